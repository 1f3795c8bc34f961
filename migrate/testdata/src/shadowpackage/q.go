package shadowpackage

func timer() {}
