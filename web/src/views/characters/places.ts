/** Where a finding leads to: a part of the editor, and a field, entry or place in a list. */
export interface Place {
  part: string
  path: string
  entry?: string
  index?: number
}

const partsOf: Record<string, string> = { roleCard: 'card', data: 'card', worldBook: 'worldbook', preset: 'preset', authorNote: 'note', regexScripts: 'scripts' }

/** placeOf reads the path of a finding, such as worldBook.entries.3.key[0]. */
export function placeOf(path: string, alone: boolean): Place {
  const [, first = '', rest = ''] = /^(\w*)(.*)$/s.exec(path) ?? []
  const part = partsOf[first] ?? (alone ? 'card' : first === 'entries' ? 'worldbook' : 'card')
  const inside = partsOf[first] ? rest.replace(/^\./, '') : path
  if (part === 'worldbook') {
    const entry = /^entries\.(.+?)\.(?:content|key(?:\[\d+\])?|position)$/s.exec(inside)?.[1]
    return { part, path: inside.match(/(content|key|position)/)?.[1] ?? '', ...(entry !== undefined && { entry }) }
  }
  const index = /^(?:prompts|scripts)?\[(\d+)\]/.exec(inside)?.[1]
  if (part === 'note') return { part, path: 'authorNote.content' }
  if (part !== 'card') return { part, path: inside.split('.').at(-1) ?? '', ...(index !== undefined && { index: Number(index) }) }
  return { part, path: inside }
}
