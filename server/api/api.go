// Package api has the operations: what clients can ask for, how they ask for it and what they get.
// Each file has those of one subject, as entries of a table. Package server serves the tables.
//
// An operation decodes its data strictly and calls a service. Its result is encoded as
// JSON, in the shapes that openapi.yaml and asyncapi.yaml of package server specify.
package api

import (
	"slices"

	"nodest/character"
	"nodest/chat"
	"nodest/chat/archive"
	"nodest/circle"
	"nodest/cognition"
	"nodest/cognition/side"
	"nodest/internal/attachment"
	"nodest/internal/mcptool"
	"nodest/internal/rights"
	"nodest/internal/stream"
	"nodest/internal/tavern"
	"nodest/knowledge"
	"nodest/memory"
	"nodest/memory/dream"
	"nodest/nodest"
	"nodest/websearch"
	"nodest/websearch/research"
)

// Services are the subjects that the operations call.
type Services struct {
	Engine      *nodest.Engine
	Characters  *character.Service
	Chats       *chat.Service
	Archives    *archive.Service
	Memory      *memory.Service
	Dreams      *dream.Service
	Circle      *circle.Service
	Cognition   *cognition.Service
	Side        *side.Service
	Knowledge   *knowledge.Service
	Attachments *attachment.Service
	Web         *websearch.Service
	Research    *research.Service
	Tools       *mcptool.Service
	Rights      *rights.Service
	Tavern      *tavern.Service
	Hub         *stream.Hub
}

// Operations is the one list of what both transports offer, except files.
var Operations = slices.Concat(
	chatOperations, historyOperations, saveOperations, memoryOperations, cognitionOperations, dreamOperations,
	documentOperations, resourceOperations(), circleOperations, attachmentOperations, webOperations, researchOperations, toolOperations, knowledgeOperations, jobOperations, syncOperations, tavernOperations,
)

// Uploads, Downloads and Streams are what clients can ask for that is a file and not JSON.
// They exist in REST only.
var (
	Uploads   = slices.Concat(characterUploads, resourceUploads(), archiveUploads, memoryUploads, attachmentUploads, knowledgeUploads, rightsUploads, tavernUploads)
	Downloads = slices.Concat(characterDownloads, resourceDownloads(), archiveDownloads, memoryDownloads, researchDownloads)
	Streams   = slices.Concat(knowledgeStreams, tavernStreams)
)
