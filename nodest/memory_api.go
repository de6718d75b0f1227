package nodest

import (
	"context"
	"errors"
	"io"

	"nodest/jobs"
	"nodest/memory"
)

// The operations on memories and summaries. Each acts on the user's own character
// or conversation; another one is NotFound.

var errStub = errors.New("not built yet")

// SummaryTx keeps the summaries of conversations: overlays that stand in prompts
// for messages (memory.Summary).
type SummaryTx interface {
	InsertSummary(conversationID string, s *memory.Summary) error
	// UpdateSummary stores the text, method and digest of s.
	UpdateSummary(conversationID string, s *memory.Summary) error
	Summary(id string) (conversationID string, s *memory.Summary, err error)
	// Summaries lists those of a conversation that are not deleted, newest
	// generation first.
	Summaries(conversationID string) ([]*memory.Summary, error)
	DeleteSummary(id string) error
	// LatestGeneration is the highest that the conversation ever had, 0 = none.
	LatestGeneration(conversationID string) (int, error)
	// ChangedSince tells whether a message of the conversation with a seq up to upTo
	// has got another state in a version after that one.
	ChangedSince(conversationID string, version, upTo int64) (bool, error)
}

// Memories lists facts, newest first.
func (e *Engine) Memories(ctx context.Context, userID, characterID string, f memory.Filter, cursor string, limit int) (items []memory.Memory, next string, err error) {
	return nil, "", errStub
}

// MemorySearch is what a user looks for in a memory.
type MemorySearch struct {
	Text           string
	ConversationID string // "" = all of the character
	Layers         []memory.Layer
	Recall         bool // mode=recall: the plain ranking
	Limit          int  // 1 to 100; default 10
}

// FoundMemory is a unit that fits, with the reasons.
type FoundMemory struct {
	ID      string             `json:"id"`
	Layer   memory.Layer       `json:"layer"`
	Memory  *memory.Memory     `json:"memory,omitempty"` // of a fact
	Said    *SaidText          `json:"said,omitempty"`   // of a text
	Score   float64            `json:"score"`            // 0 to 1
	Parts   memory.Parts       `json:"parts"`
	Signals map[string]float64 `json:"signals"`
	Sources []SaidText         `json:"sources,omitempty"` // texts that a fact was taken from and that fit as well
}

// SaidText is a text of a chat that was found.
type SaidText struct {
	memory.Evidence
	Role string `json:"role"`
	Name string `json:"name,omitempty"`
	Text string `json:"text"`
	At   string `json:"at"`
}

// SearchMemories ranks facts and texts.
func (e *Engine) SearchMemories(ctx context.Context, userID, characterID string, q MemorySearch) ([]FoundMemory, error) {
	return nil, errStub
}

// CreateMemory stores a memory by the user's hand.
func (e *Engine) CreateMemory(ctx context.Context, c *Call, characterID string, d memory.Draft) (*memory.Memory, error) {
	return nil, errStub
}

// EditMemory changes one; a new text makes a new version.
func (e *Engine) EditMemory(ctx context.Context, c *Call, characterID, id string, p memory.Patch) (*memory.Memory, error) {
	return nil, errStub
}

// DeleteMemory retires a memory, or purges it with all versions.
func (e *Engine) DeleteMemory(ctx context.Context, c *Call, characterID, id string, purge bool) error {
	return errStub
}

// RestoreMemory makes a retired or older version count again.
func (e *Engine) RestoreMemory(ctx context.Context, c *Call, characterID, id string) (*memory.Memory, error) {
	return nil, errStub
}

// MemoryHistory returns the versions of a memory, oldest first.
func (e *Engine) MemoryHistory(ctx context.Context, userID, characterID, id string) ([]memory.Memory, error) {
	return nil, errStub
}

// ForgetInput says what to forget: everything about Query, these IDs, or All.
type ForgetInput struct {
	Query  string   `json:"query"`
	IDs    []string `json:"ids"`
	All    bool     `json:"all"`
	DryRun bool     `json:"dryRun"`
}

// ForgetMemories previews, or purges, what fits.
func (e *Engine) ForgetMemories(ctx context.Context, c *Call, characterID string, in ForgetInput) (*memory.Forgotten, error) {
	return nil, errStub
}

// MemorySuggestions lists suggestions, newest first; state "" = open.
func (e *Engine) MemorySuggestions(ctx context.Context, userID, characterID, state, cursor string, limit int) (items []memory.Suggested, next string, err error) {
	return nil, "", errStub
}

// DecideSuggestion accepts or rejects one.
func (e *Engine) DecideSuggestion(ctx context.Context, c *Call, characterID, id, decision string) (*memory.Suggested, error) {
	return nil, errStub
}

// ExportMemories writes JSON Lines.
func (e *Engine) ExportMemories(ctx context.Context, userID, characterID string, w io.Writer) error {
	return errStub
}

// ImportMemories takes JSON Lines; lines that are wrong are told, the rest is taken.
func (e *Engine) ImportMemories(ctx context.Context, c *Call, characterID string, r io.Reader) (*memory.Imported, error) {
	return nil, errStub
}

// MemoryJobs lists the background work about a character's memory, newest first.
func (e *Engine) MemoryJobs(ctx context.Context, userID, characterID, cursor string, limit int) (items []*jobs.Job, next string, err error) {
	return nil, "", errStub
}

// ExtractNow enqueues the extraction of a conversation, to run at once.
func (e *Engine) ExtractNow(ctx context.Context, c *Call, conversationID string) error {
	return errStub
}

// RecalledFor returns what was recalled for the shown text of a reply, by rank.
func (e *Engine) RecalledFor(ctx context.Context, userID, messageID string) ([]FoundMemory, error) {
	return nil, errStub
}

// ---- summaries

// Summaries lists those of a conversation, newest first; Active is the one in force.
func (e *Engine) Summaries(ctx context.Context, userID, conversationID string) ([]*SummaryView, error) {
	return nil, errStub
}

// SummaryView is a summary and whether it is in force.
type SummaryView struct {
	*memory.Summary
	Active bool
}

// SummaryRange is what to summarise by hand; without ids the middle of the branch.
type SummaryRange struct{ From, To string }

// Summarise makes a summary now and waits for it.
//
// Errors: NotFound; Invalid for a range; Conflict with details.reason (memory.Skip)
// when there is nothing to summarise.
func (e *Engine) Summarise(ctx context.Context, c *Call, conversationID string, r SummaryRange) (*SummaryView, error) {
	return nil, errStub
}

// SummariseLater enqueues that.
func (e *Engine) SummariseLater(ctx context.Context, c *Call, conversationID string, r SummaryRange) error {
	return errStub
}

// EditSummary replaces the text by the user's (method user).
func (e *Engine) EditSummary(ctx context.Context, c *Call, conversationID, id, text string) (*SummaryView, error) {
	return nil, errStub
}

// DeleteSummary gives the full history back.
func (e *Engine) DeleteSummary(ctx context.Context, c *Call, conversationID, id string) error {
	return errStub
}
