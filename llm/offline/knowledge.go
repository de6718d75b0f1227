package offline

import (
	"cmp"
	"html"
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/llm"
)

// The tools that the offline model knows how to call.
const (
	searchTool = "searchKnowledgeBase"
	readTool   = "readKnowledge"
)

// How much of what is asked for a sentence must have, as a share: to be quoted, and to
// answer without more reading.
const (
	someEvidence   = 0.3
	enoughEvidence = 0.6
)

// askFor returns the tools that the model calls before it answers: it searches once for a
// question, and reads the best file if the excerpts alone do not answer it.
func askFor(req llm.Request) []llm.ToolCall {
	offers := func(name string) bool {
		return slices.ContainsFunc(req.Tools, func(t llm.Tool) bool { return t.Name == name })
	}
	if req.Task != llm.Reply || req.NoCalls || !offers(searchTool) {
		return nil
	}
	s := readScene(req)
	if !s.wantsFacts() {
		return nil
	}
	if !s.searched {
		return []llm.ToolCall{call(searchTool, map[string]any{"query": clip(s.said, longestQuery)})}
	}
	if s.read || !offers(readTool) || s.topFile.id == "" || len(s.docs) > 0 && s.docs[0].share >= enoughEvidence {
		return nil
	}
	args := map[string]any{"fileIds": []string{s.topFile.id}}
	if len(s.topFile.chunks) > 0 {
		args["aroundChunkIds"] = s.topFile.chunks[:min(len(s.topFile.chunks), 10)]
	}
	return []llm.ToolCall{call(readTool, args)}
}

// longestQuery is in code points.
const longestQuery = 500

// call makes a call with the same id for the same arguments.
func call(name string, args map[string]any) llm.ToolCall {
	return llm.ToolCall{ID: "offline-" + name, Name: name, Arguments: llm.JSONLine(args)}
}

var (
	// smallTalk is what a question about the character or a greeting begins with.
	smallTalk = regexp.MustCompile(`(?i)^(?:hi|hey|hello|good (?:morning|evening|night|day)|thank|what'?s up|` +
		`(?:and |so )?(?:how|what|where|why|who|do|are|have|were|did)(?:'s|'re| is| are| do| did| have| were)? ?(?:you|your)\b)|` +
		`^(?:你好|您好|早上好|晚上好|谢谢)|你(?:好吗|怎么样|还好|喜欢|觉得|爱|是谁|叫什么|在干|在做)`)
	knowing = regexp.MustCompile(`(?i)\bknow\b|知道`)
	asks    = regexp.MustCompile(`(?i)\b(?:look up|find out|explain|describe|summari[sz]e|according to|whose?|why)\b|告诉我|介绍|查一下|说说|讲讲|根据|为何|怎么|如何|何时|哪里`)
)

// wantsFacts reports whether what the user says asks for something that documents may have.
func (s *scene) wantsFacts() bool {
	if s.said == "" || s.known() != "" || smallTalk.MatchString(s.said) && !knowing.MatchString(s.said) {
		return false
	}
	return (isQuestion.MatchString(s.said) || asks.MatchString(s.said)) && len(wanted(s.said)) > 0
}

// wanted are the terms that are asked for, each once, without those that only ask.
func wanted(said string) []string {
	var list []string
	for t := range terms(said) {
		if !strings.ContainsAny(t, functionCharacters()+"谁哪里么何几多少") && !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return list
}

// document is a file that a result names.
type document struct {
	id     string
	chunks []string
}

// evidence is a sentence of a document, with the share of what is asked for that it has.
type evidence struct {
	finding
	share float64
}

// Blocks of documents in a prompt: passages beside the user's message, and whole files before
// the chat.
var (
	passagesBlock  = regexp.MustCompile(`(?s)<knowledge>(.*)</knowledge>`)
	documentsBlock = regexp.MustCompile(`(?s)<character_knowledge>(.*)</character_knowledge>`)
	documentTag    = regexp.MustCompile(`<(/?)(file|chunk)\b([^>]*)>`)
	attribute      = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// withoutDocuments removes the blocks of documents.
func withoutDocuments(text string) string {
	if !strings.Contains(text, "knowledge>") {
		return text
	}
	return documentsBlock.ReplaceAllString(passagesBlock.ReplaceAllString(text, ""), "")
}

// readDocuments takes the documents from the results of tools behind the user's message, and
// from the blocks of the prompt.
func (s *scene) readDocuments(messages []llm.Message) {
	var found []finding
	for _, m := range messages[lastIndex(messages, llm.User)+1:] {
		if m.Result == nil {
			continue
		}
		s.searched = s.searched || m.Result.Name == searchTool
		s.read = s.read || m.Result.Name == readTool
		found = append(found, s.passages(m.Result.Text)...)
	}
	for _, m := range slices.Backward(messages) {
		if m.Role == llm.Assistant || !strings.Contains(m.Text, "knowledge>") {
			continue
		}
		if block := passagesBlock.FindStringSubmatch(m.Text); block != nil && !s.searched {
			s.searched = true
			if found = s.passages(block[1]); found == nil {
				found = slices.Collect(readFindings(block[1]))
			}
		}
		if block := documentsBlock.FindStringSubmatch(m.Text); block != nil {
			found = append(found, s.passages(block[1])...)
		}
	}
	s.docs = weigh(found, s.said)
}

// passages returns the sentences of the files and chunks in a text, and notes the first file.
func (s *scene) passages(text string) []finding {
	var found []finding
	var file, chunk map[string]string
	tags := documentTag.FindAllStringSubmatchIndex(text, -1)
	for i, at := range tags {
		attributes := attributesOf(text[at[6]:at[7]])
		switch name := text[at[4]:at[5]]; {
		case at[3] > at[2]: // it closes
			if chunk = nil; name == "file" {
				file = nil
			}
		case name == "file":
			if file, chunk = attributes, nil; s.topFile.id == "" && file["error"] == "" {
				s.topFile.id = file["id"]
			}
		default:
			if chunk = attributes; file["id"] == s.topFile.id && chunk["id"] != "" {
				s.topFile.chunks = append(s.topFile.chunks, chunk["id"])
			}
		}
		ref := cmp.Or(chunk["ref"], file["ref"])
		if ref == "" || i+1 == len(tags) {
			continue
		}
		f := finding{number: ref, title: strings.TrimSpace(file["name"] + " " + cmp.Or(chunk["heading"], file["heading"]))}
		for f := range sentencesBelow(f, html.UnescapeString(text[at[1]:tags[i+1][0]])) {
			found = append(found, f)
		}
	}
	return found
}

func attributesOf(tag string) map[string]string {
	m := map[string]string{}
	for _, a := range attribute.FindAllStringSubmatch(tag, -1) {
		m[a[1]] = html.UnescapeString(a[2])
	}
	return m
}

// sentencesBelow yields the sentences of a text as findings like f; a heading in it becomes
// their title.
func sentencesBelow(f finding, text string) iter.Seq[finding] {
	return func(yield func(finding) bool) {
		title := f.title
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "#") {
				f.title = title + " " + strings.TrimLeft(line, "# ")
				continue
			}
			for sentence := range sentences(plain(line)) {
				f.text = clip(strings.TrimSpace(sentence), longestFinding)
				if utf8.RuneCountInString(f.text) >= shortestFinding && !yield(f) {
					return
				}
			}
		}
	}
}

// weigh returns those sentences that have something of what is asked for, the best first. What
// only the title has counts less.
func weigh(found []finding, said string) []evidence {
	asked := wanted(said)
	var list []evidence
	for _, f := range found {
		inText, inTitle := overlapOf(f.text, asked), overlapOf(f.title, asked)
		share := 0.0
		for i := range asked {
			if inText[i] {
				share++
			} else if inTitle[i] {
				share += 0.5
			}
		}
		if slices.Contains(inText, true) {
			list = append(list, evidence{f, share / float64(len(asked))})
		}
	}
	slices.SortStableFunc(list, func(a, b evidence) int { return cmp.Compare(b.share, a.share) })
	return list
}

// overlapOf tells which of the terms a text has.
func overlapOf(text string, asked []string) []bool {
	has := make([]bool, len(asked))
	for t := range terms(text) {
		if i := slices.Index(asked, t); i >= 0 {
			has[i] = true
		}
	}
	return has
}

// documented is what the documents say about the question; where they were searched and say
// nothing, it is that.
func (c *composer) documented() string {
	if !c.wantsFacts() {
		return ""
	}
	if quoted := c.quoted(); quoted != "" {
		return strings.TrimSpace(strings.ReplaceAll(c.say(c.pick(c.finding())), "%t", "")) + "\n\n" + quoted + "\n\n"
	}
	if c.searched {
		return c.say(c.pick(c.missing()))
	}
	return ""
}

// quoted are at most two sentences of the documents that answer the question, with the numbers
// of their sources; "" if none does.
func (c *composer) quoted() string {
	if len(c.docs) == 0 || c.docs[0].share < someEvidence {
		return ""
	}
	text := c.marked(c.docs[0])
	for _, d := range c.docs[1:] {
		if d.share >= enoughEvidence && d.text != c.docs[0].text {
			return text + c.space + c.marked(d)
		}
	}
	return text
}

func (c *composer) marked(d evidence) string { return d.text + c.space + "[^" + d.number + "]" }
