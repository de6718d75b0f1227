// Presets: their prompts, and the list that orders them and switches them on. Of several
// lists the server uses that of character 100001, else the first (in the SillyTavern dialect
// that of 100000); without one the prompts stand in the order of the document (in the
// SillyTavern dialect in its own order, but for files of the NodeST app).

import type { Dialect } from '../lib/types'
import { flag, isObject, list, move, put, read, text, type Doc, type Path } from './path'

export interface Item {
  identifier: string
  enabled: boolean
  /** Where the prompt is; -1 = the card or the chat gives its text. */
  prompt: number
}

const identifierOf = (p: unknown, i: number) => text(p, ['identifier']) || 'prompt-' + (i + 1)

const orderPath = (preset: unknown, dialect: Dialect): Path | null => {
  const lists = list(preset, ['prompt_order'])
  const of = (id: number) => lists.findIndex((l) => Number(read(l, ['character_id'])) === id)
  const at = of(100001)
  if (at >= 0) return ['prompt_order', at, 'order']
  const other = dialect === 'nodest' ? 0 : of(100000)
  return lists.length > 0 && other >= 0 ? ['prompt_order', other, 'order'] : null
}

export const hasPrompts = (preset: unknown) => Array.isArray(read(preset, ['prompts']))

/** items lists the prompts in the order in which they are used. */
export function items(preset: unknown, dialect: Dialect): Item[] {
  const prompts = list(preset, ['prompts'])
  const at = orderPath(preset, dialect)
  const listed = at ? list(preset, at).filter(isObject) : []
  const tavern = dialect === 'sillytavern' && !at && !Object.hasOwn(isObject(prompts[0]) ? prompts[0] : {}, 'enable')
  const order = tavern ? tavernOrder : listed
  const places = new Map<string, number>()
  prompts.forEach((p, i) => isObject(p) && !places.has(identifierOf(p, i)) && places.set(identifierOf(p, i), i))
  if (order.length === 0) return prompts.flatMap((p, i) => (isObject(p) ? [{ identifier: identifierOf(p, i), enabled: flag(p, ['enable'], true), prompt: i }] : []))
  return order.map((o) => {
    const identifier = text(o, ['identifier'])
    return { identifier, enabled: flag(o, ['enabled'], true), prompt: places.get(identifier) ?? -1 }
  })
}

/** unlisted are prompts that the order leaves out: they are never used. */
export function unlisted(preset: unknown, dialect: Dialect): Item[] {
  const listed = new Set(items(preset, dialect).map((i) => i.identifier))
  return list(preset, ['prompts']).flatMap((p, i) => (isObject(p) && !listed.has(identifierOf(p, i)) ? [{ identifier: identifierOf(p, i), enabled: false, prompt: i }] : []))
}

/** ordered is the preset with a list of order, which it may lack. */
function ordered(preset: Doc, dialect: Dialect): { preset: Doc; path: Path } {
  const path = orderPath(preset, dialect)
  if (path && list(preset, path).length > 0) return { preset, path }
  const order = items(preset, dialect).map(({ identifier, enabled }) => ({ identifier, enabled }))
  if (path) return { preset: put(preset, path, order), path }
  const lists = list(preset, ['prompt_order'])
  return { preset: put(preset, ['prompt_order'], [...lists, { character_id: 100001, order }]), path: ['prompt_order', lists.length, 'order'] }
}

export function moveItem(preset: Doc, dialect: Dialect, from: number, to: number): Doc {
  const o = ordered(preset, dialect)
  return put(o.preset, o.path, move(list(o.preset, o.path), from, to))
}

export function toggle(preset: Doc, dialect: Dialect, at: number, on: boolean): Doc {
  const o = ordered(preset, dialect)
  const item = items(o.preset, dialect)[at]
  const switched = put(o.preset, [...o.path, at, 'enabled'], on)
  // A prompt that has a switch of its own needs both.
  return on && item && item.prompt >= 0 && read(preset, ['prompts', item.prompt, 'enable']) === false ? put(switched, ['prompts', item.prompt, 'enable'], true) : switched
}

/** addToOrder lists a prompt at the end. */
export function addToOrder(preset: Doc, dialect: Dialect, identifier: string): Doc {
  const o = ordered(preset, dialect)
  return put(o.preset, o.path, [...list(o.preset, o.path), { identifier, enabled: true }])
}

export function takeFromOrder(preset: Doc, dialect: Dialect, at: number): Doc {
  const o = ordered(preset, dialect)
  return put(o.preset, o.path, list(o.preset, o.path).filter((_, i) => i !== at))
}

export function addPrompt(preset: Doc, dialect: Dialect, name: string): { preset: Doc; identifier: string } {
  const taken = new Set([...items(preset, dialect), ...unlisted(preset, dialect)].map((i) => i.identifier))
  let n = 1
  while (taken.has('custom-' + n)) n++
  const identifier = 'custom-' + n
  const withPrompt = put(ordered(preset, dialect).preset, ['prompts'], [...list(preset, ['prompts']), { identifier, name, role: 'system', content: '' }])
  return { preset: addToOrder(withPrompt, dialect, identifier), identifier }
}

export function removePrompt(preset: Doc, dialect: Dialect, identifier: string): Doc {
  const o = ordered(preset, dialect)
  const order = list(o.preset, o.path).filter((item) => text(item, ['identifier']) !== identifier)
  return put(put(o.preset, o.path, order), ['prompts'], list(preset, ['prompts']).filter((p, i) => identifierOf(p, i) !== identifier))
}

/** Identifiers whose text comes from the card, the world book, the persona or the chat. */
export const markers = ['worldInfoBefore', 'worldInfoAfter', 'personaDescription', 'charDescription', 'charPersonality', 'scenario', 'dialogueExamples', 'chatHistory'] as const

export const isMarker = (preset: unknown, item: Item) => (markers as readonly string[]).includes(item.identifier) || item.prompt < 0 || flag(preset, ['prompts', item.prompt, 'marker'], false)

const standard = ['main', 'worldInfoBefore', 'personaDescription', 'charDescription', 'charPersonality', 'scenario', 'enhanceDefinitions', 'nsfw', 'worldInfoAfter', 'dialogueExamples', 'chatHistory', 'jailbreak']

/** SillyTavern's order for a preset without a list. */
const tavernOrder = standard.map((identifier) => ({ identifier, enabled: identifier !== 'enhanceDefinitions' }))

/** The texts around the chat, as they are where a preset does not have them. */
export const utilityDefaults = {
  impersonation_prompt: "[Write your next reply from the point of view of {{user}}, using the chat history so far as a guideline for the writing style of {{user}}. Don't write as {{char}} or system. Don't describe actions of {{char}}.]",
  new_chat_prompt: '[Start a new Chat]',
  new_example_chat_prompt: '[Example Chat]',
  continue_nudge_prompt: '[Continue your last message without repeating its original content.]',
  send_if_empty: '',
  wi_format: '{0}',
  scenario_format: '{{scenario}}',
  personality_format: '{{personality}}',
  assistant_prefill: '',
  assistant_impersonation: '',
}

/** Members that have fields beside the prompts and the sampler in the SillyTavern dialect. */
export const behaviourMembers = [...Object.keys(utilityDefaults), 'names_behavior', 'squash_system_messages', 'continue_prefill', 'continue_postfix', 'custom_prompt_post_processing']

/** starter is a preset to begin with. */
export function starter(name: string): Doc {
  const order = standard.filter((identifier) => identifier !== 'enhanceDefinitions' && identifier !== 'nsfw')
  const own: Doc = {
    main: { identifier: 'main', name: 'Main Prompt', role: 'system', system_prompt: true, content: "Write {{char}}'s next reply in a fictional chat between {{char}} and {{user}}." },
    jailbreak: { identifier: 'jailbreak', name: 'Post-History Instructions', role: 'system', system_prompt: true, content: '' },
  }
  return {
    name,
    prompts: order.map((identifier) => own[identifier] ?? { identifier, name: identifier, system_prompt: true, marker: true }),
    prompt_order: [{ character_id: 100001, order: order.map((identifier) => ({ identifier, enabled: true })) }],
  }
}
