package stream

import "encoding/json"

// wireEvent is an event as clients see it (server/asyncapi.yaml).
type wireEvent struct {
	Ev             string          `json:"ev"`
	Seq            int64           `json:"seq,omitempty"`
	ConversationID string          `json:"conversationId,omitempty"`
	MessageID      string          `json:"messageId,omitempty"`
	GenerationID   string          `json:"generationId,omitempty"`
	Off            *int            `json:"off,omitempty"`
	At             int64           `json:"at"`
	By             string          `json:"by,omitempty"`
	Data           json.RawMessage `json:"data,omitempty"`
}

func encode(e *Event) []byte {
	w := wireEvent{
		Ev: e.Type, Seq: e.Seq, ConversationID: e.ConversationID, MessageID: e.MessageID,
		GenerationID: e.GenerationID, At: e.At.UnixMilli(), By: e.By, Data: e.Data,
	}
	if e.Type == "gen.delta" || e.Type == "gen.rewind" {
		w.Off = &e.Off
	}
	b, err := json.Marshal(w)
	if err != nil { // Data was not JSON: a bug of the publisher
		b, _ = json.Marshal(wireEvent{Ev: e.Type, Seq: e.Seq, At: w.At})
	}
	return b
}
