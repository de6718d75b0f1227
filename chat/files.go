package chat

import "nodest/chat/attached"

// addFiles sets Message.Files where the line that a message came from names files that an import keeps. It reports whether
// any does.
func addFiles(tx Tx, messages []*Message) (named bool, err error) {
	swipes := map[string]int{}
	for _, m := range messages {
		if m.Imported {
			swipes[m.ID] = m.SwipeIndex
		}
	}
	if len(swipes) == 0 {
		return false, nil
	}
	files, named, err := attached.Find(tx, swipes)
	for _, m := range messages {
		m.Files = files[m.ID]
	}
	return named, err
}
