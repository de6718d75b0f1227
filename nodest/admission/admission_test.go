package admission_test

import (
	"strings"
	"testing"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/nodest/admission"
)

// parseGenerations makes generations, oldest first, from words such as "a:run
// b:wait": conversation and state. Their ids are their positions, from 1.
func parseGenerations(words string) []*chat.Generation {
	var list []*chat.Generation
	for i, w := range strings.Fields(words) {
		conv, state, _ := strings.Cut(w, ":")
		g := &chat.Generation{ID: string(rune('1' + i)), ConversationID: conv, Status: chat.GenStreaming}
		if state == "wait" {
			g.Status = chat.GenQueued
		}
		list = append(list, g)
	}
	return list
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		running  string
		whenBusy string
		queued   bool
		cancel   string // ids
		code     fault.Code
		busyWith string
	}{
		{name: "nothing runs", running: ""},
		{name: "another conversation runs", running: "b:run"},
		{name: "the reply limit is reached", running: "b:run c:run", queued: true},
		{name: "the queue is full", running: "b:run c:run d:wait e:wait f:wait g:wait", code: fault.TooManyGenerations},
		{name: "the queue is full, but the reply limit is not reached", running: "b:run c:wait d:wait e:wait f:wait"},
		{name: "busy", running: "b:run a:run", code: fault.Busy, busyWith: "2"},
		{name: "busy with a queued one", running: "a:wait", code: fault.Busy, busyWith: "1"},
		{name: "busy before full", running: "a:run c:run d:wait e:wait f:wait g:wait", code: fault.Busy, busyWith: "1"},
		{name: "queue behind", running: "a:run", whenBusy: admission.Queue, queued: true},
		{name: "queue needs no queue", running: "b:run", whenBusy: admission.Queue},
		{name: "queue behind a full queue", running: "a:run a:wait a:wait a:wait a:wait", whenBusy: admission.Queue, code: fault.TooManyGenerations},
		{name: "cancel", running: "b:run a:run", whenBusy: admission.Cancel, queued: true, cancel: "2"},
		{name: "cancel also what waits", running: "a:run b:run a:wait", whenBusy: admission.Cancel, queued: true, cancel: "13"},
		{name: "what is cancelled does not fill the queue", running: "a:run a:wait a:wait a:wait a:wait", whenBusy: admission.Cancel, queued: true, cancel: "12345"},
		{name: "cancel nothing", running: "b:run", whenBusy: admission.Cancel},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := admission.Admit(parseGenerations(tt.running), "a", tt.whenBusy, 2, 4)
			if tt.code != "" {
				if !fault.Is(err, tt.code) {
					t.Fatalf("error = %v, want %s", err, tt.code)
				}
				if got := fault.Public(err).Details["generationId"]; tt.busyWith != "" && got != tt.busyWith {
					t.Errorf("busy with %v, want %s", got, tt.busyWith)
				}
				return
			}
			if err != nil || a.Queued != tt.queued || strings.Join(a.Cancel, "") != tt.cancel {
				t.Errorf("admit = %+v, %v; want queued %t, cancel %q", a, err, tt.queued, tt.cancel)
			}
		})
	}
}

func TestMayStart(t *testing.T) {
	t.Parallel()
	tests := []struct {
		running string
		starts  string // ids of those that may start, two at once
	}{
		{"a:wait", "1"},
		{"a:wait b:wait c:wait", "12"},
		{"a:run b:wait c:wait", "2"},
		{"a:run b:run c:wait", ""},
		{"a:run a:wait b:wait", "3"},
		{"a:wait a:wait b:wait", "13"},
		{"a:wait b:run", "1"}, // no other generation of its conversation is running
		{"b:run a:wait a:wait c:wait", "2"},
	}
	for _, tt := range tests {
		list := parseGenerations(tt.running)
		var starts []string
		for _, g := range list {
			if g.Status == chat.GenQueued && admission.MayStart(list, g.ID, 2) {
				starts = append(starts, g.ID)
			}
		}
		if got := strings.Join(starts, ""); got != tt.starts {
			t.Errorf("of %s start %q, want %q", tt.running, got, tt.starts)
		}
	}
	if admission.MayStart(parseGenerations("a:wait"), "unknown", 2) {
		t.Error("an unknown generation may start")
	}
}
