package macro

import (
	"hash/fnv"
	"strconv"
	"strings"
)

func chanceTable() []definition {
	return []definition{
		{
			Info: Info{Name: "random", Args: "::a::b", About: "one of the values, drawn each time"}, min: 1, max: -1, commas: true,
			value: func(r *run, _ *call, args []string) (string, bool) {
				return args[int(r.env.random()*float64(len(args)))], true
			},
		},
		{
			Info: Info{Name: "pick", Args: "::a::b", About: "one of the values, always the same one in a chat"}, min: 1, max: -1, commas: true,
			value: func(r *run, c *call, args []string) (string, bool) { return args[r.pick(c)%uint64(len(args))], true },
		},
		{
			Info: Info{Name: "roll", Args: "::2d6+1", About: "sum of dice; a number alone is one die"}, min: 1, max: 1,
			value: func(r *run, _ *call, args []string) (string, bool) { return r.roll(args[0]), true },
		},
	}
}

// random draws a number from 0 to below 1.
func (e *Env) random() float64 {
	if e.Rand == nil {
		return 0
	}
	return min(max(e.Rand(), 0), 1-1e-9)
}

// pick draws a number that depends on the chat, the text and the place in it alone.
func (r *run) pick(c *call) uint64 {
	h := fnv.New64a()
	for _, n := range [...]uint64{r.env.Seed, r.text.hash, uint64(c.at)} {
		_, _ = h.Write(strconv.AppendUint(nil, n, 16))
		_, _ = h.Write([]byte{'-'})
	}
	z := h.Sum64() // the low bits of the hash alone are not even enough
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	return z ^ z>>31
}

// The limits of roll.
const (
	maxDice  = 1000
	maxSides = 1 << 31
)

// roll adds dice up: "2d6+1", "d20", "20"; "" for anything else.
func (r *run) roll(formula string) string {
	dice, sides, plus, ok := readDice(strings.ToLower(strings.Join(strings.Fields(formula), "")))
	if !ok || !r.env.spent.charge(dice) {
		return ""
	}
	sum := plus
	for range dice {
		sum += 1 + int(r.env.random()*float64(sides))
	}
	return strconv.Itoa(sum)
}

func readDice(formula string) (dice, sides, plus int, ok bool) {
	before, after, isDice := strings.Cut(formula, "d")
	if !isDice {
		sides, ok = integer(formula)
		return 1, sides, 0, ok && sides >= 1 && sides <= maxSides
	}
	dice = 1
	if before != "" {
		if dice, ok = integer(before); !ok || dice < 1 || dice > maxDice {
			return 0, 0, 0, false
		}
	}
	if at := strings.IndexAny(after, "+-"); at >= 0 {
		if plus, ok = integer(after[at:]); !ok {
			return 0, 0, 0, false
		}
		after = after[:at]
	}
	if after == "%" {
		after = "100"
	}
	sides, ok = integer(after)
	return dice, sides, plus, ok && sides >= 1 && sides <= maxSides
}

// integer reads a whole number.
func integer(s string) (int, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 33)
	return int(n), err == nil
}
