package lang

import "strings"

// A text that is not earnest gives no facts. The rules rather leave out too much: the texts
// themselves are found anyway.
var (
	joking     = data.Rule("joking")     // marks a whole message
	takesBack  = data.Rule("takes-back") // the beginning of the message after a joke
	playing    = data.Rule("playing")    // marks a message that is part of a scene, a song or somebody else's text
	supposed   = data.Rule("supposed")   // marks a sentence: conditions, dreams, doubts, and what others say
	formerly   = data.Rule("formerly")   // the beginning of a sentence that goes on with the present
	guessWho   = data.Rule("guess-who")  // the speaker, as a riddle
	mutual     = data.Rule("mutual")     // something that somebody and the speaker did, told of the speaker
	correcting = data.Rule("correcting") // how people correct what was known of them
)

// earnest reports whether rules may read a message. A character's promises are part of its scene.
func earnest(m Line) bool {
	return !joking.MatchString(m.Text) && (m.Role == RoleCharacter || !playing.MatchString(m.Text))
}

// takenBack reports whether the user's next message says that this one was a joke.
func takenBack(all []Line, at int) bool {
	if all[at].Role != RoleUser {
		return false
	}
	for _, m := range all[at+1:] {
		if m.Role == RoleUser {
			return takesBack.MatchString(m.Text)
		}
	}
	return false
}

// Corrects reports whether a sentence of the user about text is a correction.
func Corrects(text string, sources []Line) bool {
	pieces := PiecesOf(text)
	for _, m := range sources {
		if m.Role != RoleUser {
			continue
		}
		for _, s := range SentencesOf(m.Text) {
			if correcting.MatchString(s) && SaidIn(s).Shares(pieces) {
				return true
			}
		}
	}
	return false
}

var (
	pointing = data.Rule("pointing") // an object that means something mentioned elsewhere, or has no content
	definite = data.Rule("definite")
	places   = data.Rule("places") // definite, and known to everybody
)

// saysLittle reports whether the object of an English clause is not worth remembering.
func saysLittle(object string) bool {
	object = strings.TrimSpace(object)
	if object == "" || pointing.MatchString(object) || len(strings.Fields(object)) > 16 {
		return true
	}
	return definite.MatchString(object) && !places.MatchString(object) && !capitalised.MatchString(object[1:])
}
