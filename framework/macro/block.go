package macro

import (
	"slices"
	"strings"
)

// pair finds the blocks in a list of nodes: {{name}}…{{/name}}. A closing macro closes the
// nearest open one of its name; what is open between them is no block.
func pair(nodes []node, depth int) []node {
	closing := matches(nodes)
	if closing == nil {
		return nodes
	}
	return build(nodes, closing, 0, len(nodes), depth)
}

// matches returns, for each node that opens a block, the one that closes it; nil without blocks.
func matches(nodes []node) map[int]int {
	if !slices.ContainsFunc(nodes, func(n node) bool { return n.call != nil && n.call.closes }) {
		return nil
	}
	var found map[int]int
	var stack []int
	opened := map[*definition]int{}
	for i, n := range nodes {
		c := n.call
		switch {
		case c == nil || c.def == nil:
		case !c.closes:
			if c.def.takes(len(c.args) + 1) {
				stack = append(stack, i)
				opened[c.def]++
			}
		case opened[c.def] > 0 && (len(c.args) == 0):
			if found == nil {
				found = map[int]int{}
			}
			for {
				top := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				def := nodes[top].call.def
				opened[def]--
				if def == c.def {
					found[top] = i
					break
				}
			}
		}
	}
	return found
}

func build(nodes []node, closing map[int]int, from, to, depth int) []node {
	var list []node
	for i := from; i < to; i++ {
		end, block := closing[i]
		if !block || depth == maxNested {
			list = append(list, nodes[i])
			continue
		}
		c := *nodes[i].call
		body := build(nodes, closing, i+1, end, depth+1)
		if !c.keeps {
			dedent(body)
		}
		c.block = true
		c.args = append(c.args[:len(c.args):len(c.args)], body)
		c.closing = rawClosing(nodes[end].call)
		c.end = nodes[end].call.end
		list = append(list, node{call: &c})
		i = end
	}
	return list
}

func rawClosing(c *call) string {
	var b strings.Builder
	for _, n := range c.inner {
		b.WriteString(n.text)
	}
	return "{{" + b.String() + "}}"
}

// dedent removes the indentation of the first line that is not blank from all lines of a block.
func dedent(body []node) {
	indent := indentation(body)
	if indent == 0 {
		return
	}
	fresh := true // at the beginning of a line
	for i := range body {
		if body[i].call != nil {
			fresh = false
			continue
		}
		var b strings.Builder
		for line := range strings.Lines(body[i].text) {
			if fresh {
				blank := len(line) - len(strings.TrimLeft(line, " \t"))
				line = line[min(indent, blank):]
			}
			b.WriteString(line)
			fresh = true
		}
		fresh = strings.HasSuffix(body[i].text, "\n")
		body[i].text = b.String()
	}
}

// indentation counts the blanks before the first thing that is not blank.
func indentation(body []node) int {
	indent := 0
	for _, n := range body {
		if n.call != nil {
			return indent
		}
		rest := strings.TrimLeft(n.text, blanks)
		line := n.text[:len(n.text)-len(rest)]
		if at := strings.LastIndexByte(line, '\n'); at >= 0 {
			indent, line = 0, line[at+1:]
		}
		indent += len(line)
		if rest != "" {
			return indent
		}
	}
	return 0
}
