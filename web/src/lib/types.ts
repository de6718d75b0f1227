// The objects of the API under short names.

import type { components } from '@nodest/client'

type S = components['schemas']
export type { Event, Reply } from '@nodest/client'
export type Character = S['CharacterHead']
export type Conversation = S['Conversation']
export type Message = S['Message']
export type Swipe = S['Swipe']
export type Save = S['Save']
export type Branch = S['Branch']
export type TurnOptions = S['TurnOptions']
export type User = S['User']
export type BookTested = S['WorldBookTested']
export type ScriptsTested = S['RegexScriptTested']
export type Health = S['Health']
export type ProviderTest = S['ProviderTest']
export type Settings = S['Settings']
export type Provider = S['Provider']
export type Token = S['Token']
export type UsageRow = S['UsageRow']
export type UserUsage = S['UserUsage']
export type Job = S['Job']
export type ResourceHead = S['ResourceHead']
export type Resource = S['Resource']
export type Dialect = S['Dialect']
export type FullCharacter = S['Character']
export type CharacterSettings = S['CharacterSettings']
