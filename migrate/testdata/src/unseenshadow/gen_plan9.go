package main

const tickless2 = "a name of another package"
