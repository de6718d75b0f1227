package reader

import (
	"iter"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// No function here recurses: the depth of a page is chosen by strangers.

// following returns the node after n and its descendants, inside root.
func following(n, root *html.Node) *html.Node {
	for n != root {
		if n.NextSibling != nil {
			return n.NextSibling
		}
		n = n.Parent
	}
	return nil
}

// nodes yields the descendants of root in document order. The node that was yielded and
// those behind it may be removed; the descendants of a removed node are skipped.
func nodes(root *html.Node) iter.Seq[*html.Node] {
	return func(yield func(*html.Node) bool) {
		for n := root.FirstChild; n != nil; {
			after, parent := following(n, root), n.Parent
			if !yield(n) {
				return
			}
			switch {
			case n.Parent != parent: // it was removed
				n = after
			case n.FirstChild != nil:
				n = n.FirstChild
			default:
				n = following(n, root)
			}
		}
	}
}

// tour calls enter for a node and all of its descendants, and leave after those of the
// node; leave is not called for text. If enter returns false, the descendants are left out.
func tour(root *html.Node, enter func(*html.Node) bool, leave func(*html.Node)) {
	for n := root; n != nil; {
		if enter(n) && n.FirstChild != nil {
			n = n.FirstChild
			continue
		}
		for {
			if n.Type == html.ElementNode {
				leave(n)
			}
			if n == root {
				return
			}
			if n.NextSibling != nil {
				n = n.NextSibling
				break
			}
			n = n.Parent
		}
	}
}

func remove(n *html.Node) {
	if n.Parent != nil {
		n.Parent.RemoveChild(n)
	}
}

func is(n *html.Node, tags ...atom.Atom) bool {
	return n != nil && n.Type == html.ElementNode && slices.Contains(tags, n.DataAtom)
}

func attr(n *html.Node, key string) string {
	if i := attrIndex(n, key); i >= 0 {
		return n.Attr[i].Val
	}
	return ""
}

func hasAttr(n *html.Node, key string) bool { return attrIndex(n, key) >= 0 }

func attrIndex(n *html.Node, key string) int {
	return slices.IndexFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
}

// within returns the nearest ancestor of n, or n itself, that is one of tags.
func within(n *html.Node, tags ...atom.Atom) *html.Node {
	for ; n != nil; n = n.Parent {
		if is(n, tags...) {
			return n
		}
	}
	return nil
}

// first returns the first element of a name under root, or nil.
func first(root *html.Node, tag atom.Atom) *html.Node {
	for n := range nodes(root) {
		if is(n, tag) {
			return n
		}
	}
	return nil
}

// text returns the text of a node with white space collapsed. Blocks and line breaks
// separate words.
func text(root *html.Node) string {
	if root == nil {
		return ""
	}
	var b strings.Builder
	tour(root, func(n *html.Node) bool {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		} else if n.Type == html.ElementNode && (!inline[n.DataAtom] || n.DataAtom == atom.Br) {
			b.WriteByte(' ')
		}
		return true
	}, func(n *html.Node) {
		if !inline[n.DataAtom] {
			b.WriteByte(' ')
		}
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// size is the number of characters in the text of every node under a root, without
// white space. Chinese, Japanese and Korean characters count as two.
type sizes map[*html.Node]int

func measure(root *html.Node) sizes {
	s := sizes{}
	var stack []int
	tour(root, func(n *html.Node) bool {
		switch n.Type {
		case html.TextNode:
			c := weight(n.Data)
			s[n] = c
			if len(stack) > 0 {
				stack[len(stack)-1] += c
			}
		case html.ElementNode:
			stack = append(stack, 0)
		}
		return true
	}, func(n *html.Node) {
		c := stack[len(stack)-1]
		s[n] = c
		if stack = stack[:len(stack)-1]; len(stack) > 0 {
			stack[len(stack)-1] += c
		}
	})
	return s
}

func weight(s string) (n int) {
	for _, r := range s {
		switch {
		case r <= ' ' || r == 0xA0 || r == 0x3000:
		case wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide reports whether r is of a script that writes a word with one or two characters.
func wide(r rune) bool {
	return r >= 0x2E80 && r <= 0x9FFF || r >= 0xAC00 && r <= 0xD7A3 || r >= 0xF900 && r <= 0xFAFF ||
		r >= 0xFF00 && r <= 0xFF9F || r >= 0x20000 && r <= 0x3FFFF
}
