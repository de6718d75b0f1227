package reader

import (
	"regexp"
	"strings"
	"unicode"
)

var (
	challenge = regexp.MustCompile(`(?i)access (?:is |has been )?denied|just a moment|verify (?:that )?you(?:'re| are) (?:a )?human|` +
		`checking (?:if the site connection|your browser)|enable javascript and cookies|unusual traffic|captcha|are you a robot|` +
		`attention required|you have been blocked|request (?:was |has been )?blocked|ddos protection|` +
		`访问过于频繁|安全验证|人机验证|滑块|拖动.{0,8}滑|访问被拒绝|アクセスが拒否|ロボットではありません|不正なアクセス`)
	paywall = regexp.MustCompile(`(?i)subscribe (?:now )?to (?:continue|read|keep reading)|(?:continue|keep) reading (?:with|by) (?:a )?subscri|` +
		`(?:this|the) (?:article|content|story) is (?:only )?(?:for|available to) (?:our )?(?:subscribers|members)|subscribers only|` +
		`already a (?:subscriber|member)\?|limit of free articles|free articles? (?:left|remaining)|to read the full (?:article|story)|` +
		`付费(?:内容|阅读|文章)|开通(?:会员|VIP)|会员(?:专享|可读|内容)|订阅后(?:继续|可)|购买(?:后|本文)|登录后(?:查看|阅读)全文|` +
		`会員限定|有料(?:記事|会員)|続きを読むには`)
	consent = regexp.MustCompile(`(?i)we value your privacy|before you continue|(?:use|uses|using|accept|choose|manage)[^.]{0,40}cookies?\b|cookie (?:settings|preferences|policy)|` +
		`consent to|our \d* ?partners|使用 ?cookie|cookie ?(?:政策|设置)|隐私(?:政策|设置)|クッキー|cookieの使用`)
	missing = regexp.MustCompile(`(?i)not found|\b404\b|(?:page|article|content) (?:does ?n[o']t|no longer) exists?|no longer available|` +
		`页面不存在|找不到(?:页面|该页|网页)|(?:内容|文章|网页|页面)(?:已(?:被)?(?:删除|下线)|不存在|未找到)|ページが見つかりません|見つかりませんでした|存在しません`)
)

// shown is what a visitor of a page sees first, and what is kept of it.
type shown struct {
	title, h1  string
	visible    string   // all text that is not hidden
	paragraphs []string // of visible
	content    string   // what was kept
	linkShare  float64  // of content, 0 to 1
	links      []string // the texts of the links in content
	scripts    bool     // the page has scripts
}

const longProse = 5000 // units; so much normal text is never a wall

// check returns the outcome of a page that was fetched.
func check(s shown) (Outcome, Kind) {
	size := units(s.content)
	if spam(s) {
		return Spam, ""
	}
	if size > longProse {
		return OK, ""
	}
	top := s.title + "\n" + s.h1
	switch all := units(s.visible); {
	case all == 0, s.scripts && all < 40 && s.h1 == "":
		return Empty, ""
	case missing.MatchString(top) && size < 600:
		return NotFound, ""
	case challenge.MatchString(top+"\n"+cut(s.visible, 600)) && !hasProse(s.paragraphs, challenge):
		return Blocked, KindChallenge
	case paywall.MatchString(s.visible) && all < 1200:
		return Blocked, KindPaywall
	case consent.MatchString(top+"\n"+s.visible) && onlyConsent(s):
		return Blocked, KindConsent
	case size == 0:
		return Empty, ""
	}
	return OK, ""
}

// hasProse reports whether a paragraph of more than 400 units is free of words.
func hasProse(paragraphs []string, words *regexp.Regexp) bool {
	for _, p := range paragraphs {
		if units(p) > 400 && !words.MatchString(p) {
			return true
		}
	}
	return false
}

// onlyConsent reports whether nothing of a page is left but words about consent.
func onlyConsent(s shown) bool {
	rest := 0
	for _, p := range s.paragraphs {
		if !consent.MatchString(p) && p != s.h1 && p != s.title {
			rest += weight(p)
		}
	}
	return rest < 80
}

// spam reports whether a page repeats a few words, or one link, over and over. Numbers
// do not count: a table of results is not spam.
func spam(s shown) bool {
	words := strings.FieldsFunc(strings.ToLower(s.content), func(r rune) bool { return !unicode.IsLetter(r) })
	if len(words) >= 100 {
		windows, distinct := 0, 0
		for i := 0; i+100 <= len(words); i += 100 {
			seen := map[string]bool{}
			for _, w := range words[i : i+100] {
				seen[w] = true
			}
			windows++
			distinct += len(seen)
		}
		if distinct < 25*windows {
			return true
		}
	}
	if s.linkShare < 0.6 || len(s.links) < 10 {
		return false
	}
	repeated, most := map[string]int{}, 0
	for _, l := range s.links {
		repeated[l]++
		most = max(most, repeated[l])
	}
	return most*4 > len(s.links) && most >= 5
}

// teaser returns the paragraphs of a text before the first one about a subscription.
func teaser(markdown string) string {
	var kept []string
	for p := range strings.SplitSeq(markdown, "\n\n") {
		if paywall.MatchString(p) {
			break
		}
		kept = append(kept, p)
	}
	return strings.Join(kept, "\n\n")
}
