package generated

import "time"

func byHand(k *kept) {
	k.t = time.AfterFunc(1, start) // want `time.AfterFunc stays: the file is generated`
	time.AfterFunc(1, start)       // want `can be`
}
