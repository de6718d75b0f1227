package reader

import (
	"bytes"
	"errors"
	"regexp"
	"strings"

	"github.com/markusmobius/go-trafilatura"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// The library decides with several passes over every subtree. A page that would take it
// too long is kept as a whole, without what clean removes.
const (
	maxPasses = 24_000_000 // characters times the elements around them
	maxText   = 400_000    // bytes
	maxNodes  = 30_000
)

// An extractor says which texts of a page are its content.
type extractor func(doc *html.Node, texts []*html.Node) map[*html.Node]bool

// Marks are characters for private use, which clean has removed from the page. Each
// text gets one, and those in the library's result tell which texts it has kept: it
// builds new nodes and forgets attributes.
const (
	mark1, size1 = 0xF0000, 0xFFFE
	mark2        = 0x100000
)

func markOf(i int) rune {
	if i < size1 {
		return rune(mark1 + i)
	}
	return rune(mark2 + i - size1)
}

func indexOf(r rune) int {
	if r >= mark2 {
		return int(r-mark2) + size1
	}
	return int(r - mark1)
}

// trafilaturaKeeps is the extractor that uses go-trafilatura.
func trafilaturaKeeps(doc *html.Node, texts []*html.Node) map[*html.Node]bool {
	for i, n := range texts {
		body := strings.TrimLeft(n.Data, " \t\n\u3000")
		n.Data = n.Data[:len(n.Data)-len(body)] + string(markOf(i)) + body
	}
	result, err := extractWithin(doc)
	for i, n := range texts {
		n.Data = strings.Replace(n.Data, string(markOf(i)), "", 1)
	}
	kept := map[*html.Node]bool{}
	if err != nil {
		return kept
	}
	for n := range nodes(result.ContentNode) {
		if n.Type != html.TextNode {
			continue
		}
		for _, r := range n.Data {
			if r >= mark1 {
				if i := indexOf(r); i < len(texts) {
					kept[texts[i]] = true
				}
			}
		}
	}
	return kept
}

// extractWithin calls the library. A panic inside it is an error.
func extractWithin(doc *html.Node) (result *trafilatura.ExtractResult, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the extractor panicked")
		}
	}()
	return trafilatura.ExtractDocument(doc, trafilatura.Options{
		ExcludeComments: true,
		EnableFallback:  true,
		HtmlDateMode:    trafilatura.Disabled,
		IncludeLinks:    true,
	})
}

// content decides which texts of a page are its content: those that the extractor
// keeps, and what it has left out between them.
func content(body *html.Node, doc *html.Node, extract extractor) map[*html.Node]bool {
	var texts []*html.Node
	passes, size, depth, count := 0, 0, 0, 0
	tour(body, func(n *html.Node) bool {
		count++
		if n.Type == html.ElementNode {
			depth++
		} else if n.Type == html.TextNode && strings.TrimSpace(n.Data) != "" {
			texts = append(texts, n)
			size += len(n.Data)
			passes += depth * len(n.Data)
		}
		return true
	}, func(*html.Node) { depth-- })
	kept := map[*html.Node]bool{}
	if passes <= maxPasses && size <= maxText && count <= maxNodes {
		kept = extract(doc, texts)
	}
	if len(kept) == 0 {
		for _, n := range texts {
			kept[n] = true
		}
		return kept
	}
	keepPosts(body, kept)
	blocks := blocksOf(texts, kept)
	completeBlocks(blocks, kept)
	fillGaps(blocks, kept)
	dropPointers(blocks, kept)
	return kept
}

// block is what is shown as one paragraph, one item, one table or one program.
type block struct {
	node      *html.Node
	texts     []*html.Node
	all, kept int // weight
	links     int // weight of the text of links
}

// blocksOf returns the blocks of a page in its order.
func blocksOf(texts []*html.Node, kept map[*html.Node]bool) (blocks []*block) {
	at, data := map[*html.Node]*block{}, map[*html.Node]bool{}
	for _, n := range texts {
		node := blockOf(n, data)
		b := at[node]
		if b == nil {
			b = &block{node: node}
			at[node] = b
			blocks = append(blocks, b)
		}
		w := weight(n.Data)
		b.texts = append(b.texts, n)
		b.all += w
		if kept[n] {
			b.kept += w
		}
		if within(n, atom.A) != nil {
			b.links += w
		}
	}
	return blocks
}

// blockOf returns the innermost block around a text. data remembers which tables have data.
func blockOf(n *html.Node, data map[*html.Node]bool) *html.Node {
	for n = n.Parent; n.Parent != nil && inline[n.DataAtom]; {
		n = n.Parent
	}
	around := within(n, atom.Pre, atom.Tr)
	if around == nil {
		return n
	}
	table := within(around, atom.Table)
	if is(around, atom.Tr) && table != nil {
		if _, known := data[table]; !known {
			data[table] = isData(table)
		}
		if !data[table] {
			return n
		}
	}
	return around
}

// completeBlocks keeps the whole of a block if anything of it is kept.
func completeBlocks(blocks []*block, kept map[*html.Node]bool) {
	for _, b := range blocks {
		if b.kept > 0 {
			b.keep(kept)
		}
	}
}

func (b *block) keep(kept map[*html.Node]bool) {
	for _, n := range b.texts {
		kept[n] = true
	}
	b.kept = b.all
}

// fillGaps keeps the headings, items, programs and tables between two blocks that are
// kept, unless they are made of links.
func fillGaps(blocks []*block, kept map[*html.Node]bool) {
	last := -1
	for i, b := range blocks {
		if b.kept == 0 {
			continue
		}
		for _, gap := range blocks[last+1 : i] {
			if last >= 0 && gapKinds[gap.node.DataAtom] && gap.links*2 <= gap.all && (gap.beside(b) || gap.beside(blocks[last])) {
				gap.keep(kept)
			}
		}
		last = i
	}
}

// dropPointers drops what points to other pages from a long text: paragraphs that are
// nothing but a link, and headings such as "Read also" with the links that follow.
func dropPointers(blocks []*block, kept map[*html.Node]bool) {
	own := 0
	for _, b := range blocks {
		own += b.kept - min(b.kept, b.links)
	}
	if own < 500 {
		return
	}
	after := false // a heading that announces links
	for _, b := range blocks {
		if b.kept == 0 {
			continue
		}
		linked := b.links*10 > b.all*9
		if b.all < 80 && !linked {
			after = heads.MatchString(strings.TrimSpace(b.text()))
		} else if !linked {
			after = false
		}
		if after || linked && b.all > 20 && !is(b.node, atom.Li, atom.Dt, atom.Dd, atom.Tr, atom.Pre) {
			for _, n := range b.texts {
				delete(kept, n)
			}
		}
	}
}

func (b *block) text() string {
	var all strings.Builder
	for _, n := range b.texts {
		all.WriteString(n.Data)
	}
	return all.String()
}

var gapKinds = set(atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Li, atom.Pre, atom.Tr, atom.Caption, atom.Dt, atom.Dd, atom.Blockquote)

// beside reports whether b is under the parent of another block.
func (b *block) beside(other *block) bool {
	for n := b.node.Parent; n != nil; n = n.Parent {
		if n == other.node.Parent {
			return true
		}
	}
	return false
}

// keepPosts keeps all posts of a thread: siblings of one class that says so, which
// together are most of the page.
func keepPosts(body *html.Node, kept map[*html.Node]bool) {
	type thread struct {
		parent *html.Node
		word   string // that says so
	}
	s := measure(body)
	threads := map[thread][]*html.Node{}
	for n := range nodes(body) {
		if class := attr(n, "class"); n.Type == html.ElementNode && class != "" && len(class) <= 200 {
			if word := posts.FindString(split(class)); word != "" {
				t := thread{n.Parent, word}
				threads[t] = append(threads[t], n)
			}
		}
	}
	for _, members := range threads {
		sum, most := 0, 0
		for _, n := range members {
			sum += s[n]
			most = max(most, s[n])
		}
		if len(members) < 2 || sum*2 < s[body] || most*4 > sum*3 { // one is an article, the others are teasers
			continue
		}
		for _, n := range members {
			keepAll(n, kept)
		}
	}
}

func keepAll(root *html.Node, kept map[*html.Node]bool) {
	for n := range nodes(root) {
		if n.Type == html.TextNode && strings.TrimSpace(n.Data) != "" {
			kept[n] = true
		}
	}
}

// posts is what classes call the posts of a thread.
var posts = regexp.MustCompile(`(?:^|[-_ ])(?:posts?|message|msg|reply|answer|topic-?(?:post|body)|thread-?(?:post|item)|floor)(?:$|[-_ ])`)

// parse returns the tree of a page, and what it does not show.
func parse(doc []byte) (*html.Node, unshown, error) {
	tidied, rest, err := tidy(doc)
	if err != nil {
		return nil, unshown{}, err
	}
	root, err := html.Parse(bytes.NewReader(tidied))
	return root, rest, err
}
