package main

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A look is how an implementation is drawn in plots of lines: by colour, dashes
// and marks, so that each tells it alone.
type look struct {
	color  color.RGBA
	dashes []vg.Length
	glyph  draw.GlyphDrawer
}

// The colours are Okabe and Ito's, which people with any kind of colour vision
// tell apart.
var looks = map[string]look{
	"time":            {color.RGBA{0, 0, 0, 255}, nil, draw.CircleGlyph{}},
	"heap":            {color.RGBA{130, 130, 130, 255}, []vg.Length{6, 3}, draw.SquareGlyph{}},
	"hashed":          {color.RGBA{130, 130, 130, 255}, []vg.Length{2, 2}, draw.BoxGlyph{}},
	"tickless":        {color.RGBA{0, 114, 178, 255}, nil, draw.PyramidGlyph{}},
	"tickless-timer":  {color.RGBA{86, 180, 233, 255}, []vg.Length{8, 2, 2, 2}, draw.TriangleGlyph{}},
	"RussellLuo":      {color.RGBA{213, 94, 0, 255}, []vg.Length{6, 3}, draw.CrossGlyph{}},
	"antlabs":         {color.RGBA{0, 158, 115, 255}, []vg.Length{8, 2, 2, 2}, draw.PlusGlyph{}},
	"go-zero":         {color.RGBA{204, 121, 167, 255}, []vg.Length{2, 2}, draw.RingGlyph{}},
	"xiaoxuxiansheng": {color.RGBA{230, 159, 0, 255}, []vg.Length{10, 4}, draw.BoxGlyph{}},
}

func lookOf(impl string) look {
	if l, ok := looks[impl]; ok {
		return l
	}
	return look{color.RGBA{0, 0, 0, 255}, nil, draw.RingGlyph{}}
}

// Bars stand beside the name of whose they are. The colour only points out this
// module's.
var (
	ours   = color.RGBA{0, 114, 178, 255}
	theirs = color.RGBA{170, 170, 170, 255}
	ink    = color.RGBA{40, 40, 40, 255}
	grid   = color.RGBA{225, 225, 225, 255}
	leader = color.RGBA{160, 160, 160, 255}
)

func barColor(impl string) color.RGBA {
	switch impl {
	case "tickless", "tickless-timer", "idle.Monitor":
		return ours
	}
	return theirs
}

// paler returns c mixed with white.
func paler(c color.RGBA) color.RGBA {
	mix := func(v uint8) uint8 { return uint8((int(v) + 3*255) / 4) }
	return color.RGBA{mix(c.R), mix(c.G), mix(c.B), 255}
}
