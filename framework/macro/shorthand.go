package macro

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// variable is {{.x}}, {{$x}}, or one with an operator.
type variable struct {
	global  bool
	name    string
	op      string // "" = only the value
	operand []node
}

var operators = [...]string{"||=", "??=", "++", "--", "+=", "-=", "==", "!=", ">=", "<=", "||", "??", "=", ">", "<"}

// newVariable reads what begins with a dot or a dollar; nil if it is something else.
func newVariable(first string, more []node) *variable {
	if first == "" || first[0] != '.' && first[0] != '$' {
		return nil
	}
	v := &variable{global: first[0] == '$'}
	rest := strings.TrimLeft(first[1:], blanks)
	size := variableName(rest)
	v.name, rest = rest[:size], strings.TrimLeft(rest[size:], blanks)
	for _, op := range operators {
		if after, ok := strings.CutPrefix(rest, op); ok {
			v.op, rest = op, after
			break
		}
	}
	operand := trim(append([]node{{text: rest}}, more...))
	alone := v.op == "" || v.op == "++" || v.op == "--"
	if v.name == "" || alone && len(operand) > 0 {
		return nil
	}
	v.operand = operand
	return v
}

// variableName is the length of the name that s begins with: letters, digits, "_", and "-" within.
func variableName(s string) int {
	n := 0
	for n < len(s) {
		r, size := utf8.DecodeRuneInString(s[n:])
		letter := r == '_' || unicode.IsLetter(r)
		switch {
		case letter, n > 0 && unicode.IsNumber(r):
		case r == '-' && n > 0:
			next, _ := utf8.DecodeRuneInString(s[n+1:])
			if next != '_' && !unicode.IsLetter(next) && !unicode.IsNumber(next) {
				return n
			}
		default:
			return n
		}
		n += size
	}
	return n
}

// variable carries out a shorthand and returns its value.
func (r *run) variable(v *variable) string {
	r.inside++
	defer func() { r.inside-- }()
	vars := r.vars(v.global)
	old, there := vars.Get(v.name)
	r.env.spent.charge(vars.cost(v.name))
	switch v.op {
	case "":
		return old
	case "=":
		vars.Set(v.name, r.string(v.operand))
	case "+=":
		vars.add(v.name, r.string(v.operand))
	case "-=":
		vars.subtract(v.name, r.string(v.operand))
	case "++", "--":
		vars.add(v.name, map[string]string{"++": "1", "--": "-1"}[v.op])
		now, _ := vars.Get(v.name)
		return now
	case "||", "||=":
		return r.otherwise(v, vars, old, truthy(old))
	case "??", "??=":
		return r.otherwise(v, vars, old, there)
	default:
		return strconv.FormatBool(compare(old, r.string(v.operand), v.op))
	}
	return ""
}

// otherwise returns the value of a variable if it is good, else that of the operand, which
// an operator with "=" stores.
func (r *run) otherwise(v *variable, vars *Vars, old string, good bool) string {
	if good {
		return old
	}
	other := r.string(v.operand)
	if strings.HasSuffix(v.op, "=") {
		vars.Set(v.name, other)
	}
	return other
}

// compare compares numbers as numbers, and other values as texts: these are only equal or not.
func compare(a, b, op string) bool {
	x, isNumber := number(a)
	y, numbers := number(b)
	numbers = numbers && isNumber && strings.TrimSpace(a) != "" && strings.TrimSpace(b) != ""
	equal := a == b || numbers && x == y
	switch op {
	case "==":
		return equal
	case "!=":
		return !equal
	case ">":
		return numbers && x > y
	case ">=":
		return numbers && x >= y
	case "<":
		return numbers && x < y
	}
	return numbers && x <= y
}

func (r *run) vars(global bool) *Vars {
	if global {
		return r.env.Global
	}
	return r.env.Local
}
