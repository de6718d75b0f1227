// The objects of the memory under short names.

import type { components } from '@nodest/client'

type S = components['schemas']
export type Fact = S['Memory']
export type Found = S['Found']
export type Evidence = S['Evidence']
export type Suggestion = S['Suggestion']
export type Summary = S['Summary']
export type Forgotten = S['Forgotten']
export type Echo = S['Echo']
export type Imported = S['ImportedMemories']
export type Document = S['MemoryDocument']
export type DocumentHead = S['MemoryDocumentHead']
export type DocumentVersion = S['MemoryDocumentVersion']
export type DreamRun = S['DreamRun']
export type DreamChange = S['DreamChange']
export type BulkAction = S['BulkAction']
export type BulkFilter = S['BulkRequest']['filter']
export type BulkDone = S['BulkDone']
export type FactKind = S['MemoryKind']
export type FactSubject = S['MemorySubject']

export const kinds: FactKind[] = ['profile', 'preference', 'event', 'plan', 'promise', 'relation', 'other']
export const subjects: FactSubject[] = ['user', 'character', 'relationship', 'world']
