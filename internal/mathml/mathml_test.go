package mathml

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// TestOneForm reads formulas as the programs that draw them write them.
func TestOneForm(t *testing.T) {
	for name, c := range map[string]struct{ page, want string }{
		"elements":         {"<p>half <math><mfrac><mn>1</mn><mn>2</mn></mfrac></math> of", "half 1/2 of"},
		"an exponent":      {"<p><math><msup><mi>x</mi><mrow><mi>n</mi><mo>+</mo><mn>1</mn></mrow></msup></math>", "x^(n+1)"},
		"roots":            {"<p><math><msqrt><mn>2</mn></msqrt><mo>+</mo><mroot><mn>8</mn><mn>3</mn></mroot></math>", "√(2)+8^(1/3)"},
		"a matrix":         {"<p><math><mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr><mtr><mtd><mn>3</mn></mtd><mtd><mn>4</mn></mtd></mtr></mtable></math>", "1 2; 3 4"},
		"brackets":         {"<p><math><mi>f</mi><mfenced><mi>x</mi><mi>y</mi></mfenced></math>", "f(x,y)"},
		"TeX in elements":  {`<table><tr><td><math><semantics><mn>1</mn><annotation encoding="application/x-tex">1.33\times 10^{-4}</annotation></semantics></math></td></tr></table>`, `1.33\times 10^{-4}`},
		"its text":         {"<p><math alttext='a+b'><mi>a</mi></math>", "a+b"},
		"KaTeX":            {`<p>area <span class="katex"><span class="katex-mathml"><math><semantics><mrow><msup><mi>a</mi><mn>2</mn></msup></mrow><annotation encoding="application/x-tex">a^2</annotation></semantics></math></span><span class="katex-html" aria-hidden="true"><span class="base">a<span>2</span></span></span></span> it is`, "area a^2 it is"},
		"MathJax":          {`<p>so <mjx-container><svg aria-hidden="true"><g/></svg><mjx-assistive-mml><math><msup><mi>a</mi><mn>2</mn></msup></math></mjx-assistive-mml></mjx-container> it is`, "so a^2 it is"},
		"MathJax with CSS": {`<p>so <mjx-container><mjx-math aria-hidden="true"><mjx-mi>a</mjx-mi><mjx-mn>2</mjx-mn></mjx-math><mjx-assistive-mml><math><msup><mi>a</mi><mn>2</mn></msup></math></mjx-assistive-mml></mjx-container> it is`, "so a^2 it is"},
		"MediaWiki":        {`<p>so <span class="mwe-math-element"><span class="mwe-math-mathml-inline" style="display: none;"><math alttext="E=mc^2"><mi>E</mi></math></span><img src="a.svg" aria-hidden="true" alt="E=mc^2"></span> it is`, "so E=mc^2 it is"},
		"beside words":     {`<p><span>if <math><mi>a</mi></math> then <i aria-hidden="true">b</i></span>`, "if a then b"},
		"two beside":       {`<p><span><math><mi>a</mi></math><math><mi>b</mi></math></span>`, "ab"},
		"one in another":   {`<p><math><semantics><mi>a</mi><annotation-xml encoding="text/html"><span><math><mi>b</mi></math></span></annotation-xml></semantics></math>`, "a"},
	} {
		page, err := html.Parse(strings.NewReader(c.page))
		if err != nil {
			t.Fatal(err)
		}
		OneForm(page)
		var text strings.Builder
		for n := range page.Descendants() {
			if n.Type == html.TextNode {
				text.WriteString(n.Data)
			}
		}
		if got := strings.Join(strings.Fields(text.String()), " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
