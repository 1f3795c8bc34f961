package alarm

func (h *hub) add(f func()) *hubAlarm { return &hubAlarm{hub: h, f: f} }
