package main

// circleAccess are the views of the circle for everybody.
func circleAccess() []accessView {
	more := found(".posts article [aria-haspopup=menu]")
	return []accessView{
		{"circle", "/circle", nil, found(".posts article")},
		{"a comment", "/circle", []string{found(".tools [aria-expanded]")}, found("article form textarea")},
		{"forwarding a post", "/circle", []string{more, pressable("Forward to a chat")}, dialogOpen},
		{"reactions to a post", "/circle", []string{more, pressable("Reactions and problems")}, dialogOpen},
		{"relationships", "/circle/relationships", nil, pageText("relationship")},
		{"message box", "/circle/messages", nil, found("main select")},
		{"offers", "/circle/actions", nil, found("main .part p")},
		{"cost of the circle", "/circle/cost", nil, found("[role=meter]")},
		{"members of the circle", "/circle/members", nil, found("main li input")},
		{"settings of the circle", "/circle/settings", nil, found("main form")},
	}
}
