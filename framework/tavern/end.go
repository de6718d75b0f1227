package tavern

import (
	"cmp"
	"strings"

	"nodest/framework"
	"nodest/llm"
)

// ends are the messages around the chat that do not come from the order of the preset.
type ends struct {
	newChat  *piece   // before the chat
	ifEmpty  *piece   // behind a chat that ends with the character
	moved    []*piece // behind everything: the message that is lengthened, and the nudge to go on
	control  []*piece // last: what is asked of the model
	examples [][]*piece
	head     *string  // before each block of examples
	front    []*piece // additions of NodeST, directly before the chat
}

// buildEnd makes the messages around the chat, and the examples.
func (b *builder) buildEnd() {
	e, u := &b.ends, b.utility()
	if text := b.env.Expand(u.NewChat); text != "" {
		e.newChat = onePart(heading, llm.System, presetEntry("new_chat_prompt", "New Chat"), text)
	}
	b.buildExamples()
	b.buildMoved()
	b.buildControl()
	for _, block := range b.common.Front() {
		e.front = append(e.front, &piece{kind: finished, block: block})
	}
	last := b.chat.length - 1
	if last == b.chat.moved {
		last--
	}
	if text := b.env.Expand(u.SendIfEmpty); text != "" && last >= 0 && b.message(last).Role == string(llm.Assistant) {
		e.ifEmpty = onePart(plain, llm.User, presetEntry("send_if_empty", "Replacement of an Empty Message"), text)
	}
}

func presetEntry(id, name string) framework.Entry {
	return framework.Entry{Source: framework.SourcePreset, ID: id, Name: name, Why: framework.WhyTask}
}

// buildMoved takes the message that is lengthened to the end.
func (b *builder) buildMoved() {
	at := b.chat.moved
	if at < 0 {
		return
	}
	p := b.said(at)
	if b.c.preset.Behaviour.ContinuePrefill {
		b.ends.control = append(b.ends.control, p)
		return
	}
	b.ends.moved = []*piece{p}
	text := ""
	if in := b.in.Instruction; in != nil {
		text = in.Text
	}
	if text == "" {
		b.env.Extra = map[string]string{"lastchatmessage": strings.TrimSpace(b.chat.texts[at])}
		text = b.env.Expand(b.utility().ContinueNudge)
		b.env.Extra = nil
	}
	if text != "" {
		b.ends.moved = append(b.ends.moved, onePart(plain, llm.System, b.taskEntry(), text))
	}
}

func (b *builder) taskEntry() framework.Entry {
	e := framework.Entry{Source: framework.SourceInstruction, ID: string(b.task), Why: framework.WhyTask}
	if b.in.Instruction != nil {
		e.ID = string(b.in.Instruction.Task)
	}
	return e
}

// buildControl adds what is asked of the model, and the beginning of its reply.
func (b *builder) buildControl() {
	u, e := b.utility(), &b.ends
	text, role, prefill := "", llm.System, u.AssistantPrefill
	if in := b.in.Instruction; in != nil && b.task != Continue {
		text, role = in.Text, cmp.Or(in.Role, llm.System)
	}
	if b.task == Impersonate {
		text = cmp.Or(text, u.Impersonation, framework.InstructionText(b.in.Options.Language, llm.Impersonate))
		prefill = u.AssistantImpersonation
	}
	if text = b.env.Expand(text); text != "" {
		e.control = append(e.control, onePart(plain, role, b.taskEntry(), text))
	}
	// In the form of another provider it could share a message with the chat, which goes with it where it is refused.
	if !b.play.Prefills || b.turns() != TurnsAsTheyAre || b.chat.moved >= 0 && b.c.preset.Behaviour.ContinuePrefill {
		return
	}
	if text = b.env.Expand(prefill); text != "" {
		e.control = append(e.control, onePart(plain, llm.Assistant, presetEntry(idPrefill, "Assistant Prefill"), text))
	}
}

// idPrefill names the beginning of a reply.
const idPrefill = "assistant_prefill"

// Begins reports whether a prompt ends with the beginning of its reply, in a message of its own.
func Begins(p *framework.Prompt) bool {
	n := len(p.Entries)
	return n > 1 && p.Entries[n-1].ID == idPrefill && p.Entries[n-2].Message != p.Entries[n-1].Message
}

// buildExamples makes a list of messages of each block of the example dialogues: those of world
// books before and behind the card's. A block that nobody speaks in is one text of the system.
func (b *builder) buildExamples() {
	if b.at(idExamples) == nil {
		if b.texts.examples != "" {
			b.drop(framework.SourceCard, idExamples, sectionNames[idExamples], framework.DropDisabled)
		}
		return
	}
	top, bottom := b.placed(b.world.ExamplesTop, 5), b.placed(b.world.ExamplesBottom, 6)
	for i := range top {
		b.addExamples(top[i].entry, top[i].text)
	}
	b.addExamples(framework.Entry{Source: framework.SourceCard, ID: idExamples, Name: sectionNames[idExamples], Why: framework.WhyFixed}, b.texts.examples)
	for i := range bottom {
		b.addExamples(bottom[i].entry, bottom[i].text)
	}
}

func (b *builder) addExamples(e framework.Entry, text string) {
	text = strings.ReplaceAll(text, "\r", "")
	for _, block := range exampleBlocks(text) {
		var said []*piece
		for _, l := range exampleLines(block, b.in.Persona.Name, b.c.name()) {
			if l.text == "" {
				continue
			}
			p := onePart(example, llm.System, e, l.text)
			p.name = l.name
			b.named(p)
			said = append(said, p)
		}
		if bare := strings.TrimSpace(strings.TrimPrefix(block, startMark)); len(said) == 0 && bare != "" {
			said = append(said, onePart(example, llm.System, e, bare))
		}
		if len(said) == 0 {
			continue
		}
		if head := b.exampleHead(); head != "" {
			said = append([]*piece{onePart(heading, llm.System, presetEntry("new_example_chat_prompt", "New Example Chat"), head)}, said...)
		}
		b.ends.examples = append(b.ends.examples, said)
	}
}

// exampleHead announces a block of examples: one text for all of them.
func (b *builder) exampleHead() string {
	if b.ends.head == nil {
		head := b.env.Expand(b.utility().NewExample)
		b.ends.head = &head
	}
	return *b.ends.head
}
