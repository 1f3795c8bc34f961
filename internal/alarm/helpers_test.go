package alarm

func (h *hub) add(f func()) *member { return &member{h: h, f: f} }
