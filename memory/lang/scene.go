package lang

import "time"

// Text said in a scene that two sides play is part of the story and gives no facts. A line shows
// it: by a role, by somebody or something that only stories have, or by what the speaker does
// there and then (*bows*, "I bow and step closer"). The lines that follow belong to the scene as
// long as the other side goes on with it, and until somebody steps out of it.
var (
	opensScene = data.Rule("scene-opens")
	endsScene  = data.Rule("scene-ends")
	ofStories  = data.Rule("story") // somebody or something that only stories have, in the first person
	hasStory   = data.Rule("story-has")
	actsNow    = data.Rule("acts") // deeds of the speaker, told as it happens
)

// sceneRests is how long nothing is said until a scene has ended.
const sceneRests = 6 * time.Hour

// sceneGoesOn is how many lines of the user a scene has that nobody agreed on, from one that shows it.
const sceneGoesOn = 3

// Played returns which lines of the user are part of a scene.
func Played(lines []Line) []bool {
	played := make([]bool, len(lines))
	agreed, left := false, 0
	for i, m := range lines {
		if i > 0 && m.At.Sub(lines[i-1].At) > sceneRests {
			agreed, left = false, 0
		}
		if m.Role != RoleUser {
			if !showsScene(m.Text) {
				left = 0
			}
			continue
		}
		left = max(left-1, 0)
		shows := ofStories.MatchString(m.Text) || actsNow.MatchString(m.Text)
		switch {
		case endsScene.MatchString(m.Text):
			agreed, left = false, 0
		case opensScene.MatchString(m.Text):
			agreed = true
		case shows:
			left = sceneGoesOn
		}
		played[i] = shows || agreed || left > 0
	}
	return played
}

// showsScene reports whether a line of the other side goes on with a scene.
func showsScene(text string) bool { return Narration.MatchString(text) || hasStory.MatchString(text) }

var (
	handed     = data.List("handed")      // from where a text is words for a task: to translate, to repeat
	handedOver = data.Rule("handed-over") // marks such a text
	handedNext = data.Rule("handed-next") // the message before one
	isTask     = data.Rule("task")        // marks a sentence
)

// OwnWords returns what somebody says in a text, without words that they hand over for a task.
func OwnWords(text string) string {
	if handedOver.MatchString(text) {
		return ""
	}
	for _, from := range handed() {
		if from.MatchString(text) {
			text = text[:from.FindStringIndex(text)[0]]
		}
	}
	return text
}

// isHanded reports whether the user's message before this one says that it will be such a text.
func isHanded(all []Line, at int) bool {
	for i := at - 1; i >= 0; i-- {
		if all[i].Role == RoleUser {
			return all[at].Role == RoleUser && handedNext.MatchString(all[i].Text)
		}
	}
	return false
}
