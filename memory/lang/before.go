package lang

// beforeUs is the time before the user and the character knew each other: "Where did I live before we met?" Its
// words are about neither, so they are left out of a question, which then asks for how things were.
var beforeUs = data.Rule("before-us")

// ofBefore makes the question one about that time. If it has nothing else ("What did I do before we met?"), it
// asks for work and homes, however they are told.
func (q *Question) ofBefore() {
	q.Past = true
	if q.early = q.Asks && q.Properties == 0 && q.asked() < LeastAsked; q.early {
		q.Properties = home | work
	}
}
