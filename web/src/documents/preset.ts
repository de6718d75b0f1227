// Presets: their prompts, and the list that orders them and switches them on. Of several
// lists the server uses that of character 100001, else the first; without one the prompts
// stand in the order of the document.

import { flag, isObject, list, move, put, read, text, type Doc, type Path } from './path'

export interface Item {
  identifier: string
  enabled: boolean
  /** Where the prompt is; -1 = the card or the chat gives its text. */
  prompt: number
}

const identifierOf = (p: unknown, i: number) => text(p, ['identifier']) || 'prompt-' + (i + 1)

const orderPath = (preset: unknown): Path | null => {
  const lists = list(preset, ['prompt_order'])
  if (lists.length === 0) return null
  const at = lists.findIndex((l) => Number(read(l, ['character_id'])) === 100001)
  return ['prompt_order', Math.max(at, 0), 'order']
}

export const hasPrompts = (preset: unknown) => Array.isArray(read(preset, ['prompts']))

/** items lists the prompts in the order in which they are used. */
export function items(preset: unknown): Item[] {
  const prompts = list(preset, ['prompts'])
  const at = orderPath(preset)
  const order = at ? list(preset, at).filter(isObject) : []
  const places = new Map<string, number>()
  prompts.forEach((p, i) => isObject(p) && !places.has(identifierOf(p, i)) && places.set(identifierOf(p, i), i))
  if (order.length === 0) return prompts.flatMap((p, i) => (isObject(p) ? [{ identifier: identifierOf(p, i), enabled: flag(p, ['enable'], true), prompt: i }] : []))
  return order.map((o) => {
    const identifier = text(o, ['identifier'])
    return { identifier, enabled: flag(o, ['enabled'], true), prompt: places.get(identifier) ?? -1 }
  })
}

/** unlisted are prompts that the order leaves out: they are never used. */
export function unlisted(preset: unknown): Item[] {
  const listed = new Set(items(preset).map((i) => i.identifier))
  return list(preset, ['prompts']).flatMap((p, i) => (isObject(p) && !listed.has(identifierOf(p, i)) ? [{ identifier: identifierOf(p, i), enabled: false, prompt: i }] : []))
}

/** ordered is the preset with a list of order, which it may lack. */
function ordered(preset: Doc): { preset: Doc; path: Path } {
  const path = orderPath(preset)
  if (path && list(preset, path).length > 0) return { preset, path }
  const order = items(preset).map(({ identifier, enabled }) => ({ identifier, enabled }))
  if (path) return { preset: put(preset, path, order), path }
  return { preset: put(preset, ['prompt_order'], [{ order }]), path: ['prompt_order', 0, 'order'] }
}

export function moveItem(preset: Doc, from: number, to: number): Doc {
  const o = ordered(preset)
  return put(o.preset, o.path, move(list(o.preset, o.path), from, to))
}

export function toggle(preset: Doc, at: number, on: boolean): Doc {
  const o = ordered(preset)
  const item = items(o.preset)[at]
  const switched = put(o.preset, [...o.path, at, 'enabled'], on)
  // A prompt that has a switch of its own needs both.
  return on && item && item.prompt >= 0 && read(preset, ['prompts', item.prompt, 'enable']) === false ? put(switched, ['prompts', item.prompt, 'enable'], true) : switched
}

/** addToOrder lists a prompt at the end. */
export function addToOrder(preset: Doc, identifier: string): Doc {
  const o = ordered(preset)
  return put(o.preset, o.path, [...list(o.preset, o.path), { identifier, enabled: true }])
}

export function takeFromOrder(preset: Doc, at: number): Doc {
  const o = ordered(preset)
  return put(o.preset, o.path, list(o.preset, o.path).filter((_, i) => i !== at))
}

export function addPrompt(preset: Doc, name: string): { preset: Doc; identifier: string } {
  const taken = new Set([...items(preset), ...unlisted(preset)].map((i) => i.identifier))
  let n = 1
  while (taken.has('custom-' + n)) n++
  const identifier = 'custom-' + n
  const withPrompt = put(ordered(preset).preset, ['prompts'], [...list(preset, ['prompts']), { identifier, name, role: 'system', content: '' }])
  return { preset: addToOrder(withPrompt, identifier), identifier }
}

export function removePrompt(preset: Doc, identifier: string): Doc {
  const o = ordered(preset)
  const order = list(o.preset, o.path).filter((item) => text(item, ['identifier']) !== identifier)
  return put(put(o.preset, o.path, order), ['prompts'], list(preset, ['prompts']).filter((p, i) => identifierOf(p, i) !== identifier))
}

/** Identifiers whose text comes from the card, the world book, the persona or the chat. */
export const markers = ['worldInfoBefore', 'worldInfoAfter', 'personaDescription', 'charDescription', 'charPersonality', 'scenario', 'dialogueExamples', 'chatHistory'] as const

export const isMarker = (preset: unknown, item: Item) => (markers as readonly string[]).includes(item.identifier) || item.prompt < 0 || flag(preset, ['prompts', item.prompt, 'marker'], false)

/** starter is a preset to begin with. */
export function starter(name: string): Doc {
  const order = ['main', 'worldInfoBefore', 'personaDescription', 'charDescription', 'charPersonality', 'scenario', 'worldInfoAfter', 'dialogueExamples', 'chatHistory', 'jailbreak']
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
