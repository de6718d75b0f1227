// The objects of the circle under short names.

import type { components } from '@nodest/client'

type S = components['schemas']
export type Post = S['CirclePost']
export type Picture = { id: string; name: string }
export type Comment = S['CircleComment']
export type Turn = S['CircleTurn']
export type Graph = S['CircleGraph']
export type Relation = S['CircleRelation']
export type Item = S['CircleItem']
export type Action = S['CircleAction']
export type Settings = S['CircleSettings']
export type Spend = S['CircleSpend']
