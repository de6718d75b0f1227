// Imports into the page: files of any kind from outside, and the sample.

import { Failure, newKey, type Answer } from '@nodest/client'
import { remarkText } from '../../lib/findings'
import { plain } from '../../lib/format'
import { language } from '../../lib/language.svelte'
import { attempt, notes } from '../../lib/notes.svelte'
import { go, route } from '../../lib/router.svelte'
import { common, errorText } from '../../lib/words'
import { characters } from '../../state/characters.svelte'
import { chats } from '../../state/chats.svelte'
import { resources } from '../../state/resources.svelte'
import { rest } from '../../state/server'
import { move } from '../settings/tavern/movein.svelte'
import { added, anew, type Added } from './added.svelte'
import { shell } from './words'

/** addSample imports the built-in character and begins a chat with it. */
export async function addSample() {
  const got = await attempt(() => rest.post('/characters/sample', { query: { language: language.current } }))
  if (!got) return
  characters.put(got.character)
  await chats.create(got.character.id)
}

let busy: Promise<void> = Promise.resolve()

/** A file to import. When it is tried again, its key shows the server whether it was stored. */
interface Job {
  file: File
  key: string
  owner: { characterId?: string; conversationId?: string; makeCharacter?: 'true' }
}

/** addFiles imports files of any kind, one after another, and shows what became of each. */
export const addFiles = (files: File[]) => enqueue(files.map((file) => ({ file, key: newKey(), owner: {} })))

function enqueue(jobs: Job[]) {
  if (jobs.length > 0) busy = busy.catch(() => {}).then(() => addAll(jobs))
}

async function addAll(files: Job[]) {
  const done: Added[] = []
  const note = files.length > 1 || files[0]!.file.size > 1 << 20 ? notes.show(shell.importing(files.length), { lasting: true }) : 0
  try {
    for (const file of files) {
      const one = await add(file)
      if (one) done.push(one)
    }
  } finally {
    notes.dismiss(note)
  }
  const [one] = done
  if (!one) return
  if (done.length > 1) return added.show(done)
  if (one.problem) return void notes.show(shell.failedFile(one.file, one.problem), { kind: 'error', ...(one.again && { action: { label: common.tryAgain, run: one.again } }) })
  const text = shell.importedTo(shell.imported[one.kind] ?? one.kind, one.name)
  if (one.warnings.length > 0) notes.show(`${text} ${shell.warnings(one.warnings.length)}.`, { action: { label: shell.show, run: () => added.show(done) } })
  else notes.show(text, one.to ? { action: { label: shell.show, run: () => go(one.to) } } : {})
  // Who is not looking after the collection wants to chat.
  if (one.kind === 'character' && !/^\/(characters|library)/.test(route.path)) await chats.create(one.to.split('/').at(-1)!)
}

/** add imports one file; undefined = the settings show what becomes of it. */
async function add({ file, key, owner }: Job): Promise<Added | undefined> {
  const form = new FormData()
  form.append('file', file)
  for (const [name, id] of Object.entries(owner)) form.append(name, id)
  const name = plain(file.name)
  const refused = (problem: string, kind = '') => ({ file: name, kind, name, to: '', warnings: [], problem })
  if (!(await readable(file))) return refused(shell.unreadableFile)
  try {
    return taken(name, await rest.post('/import', { body: form, key }))
  } catch (e) {
    if (!(e instanceof Failure)) throw e
    const field = e.errors[0]?.field
    if (e.code === 'invalid_field' && (field === 'characterId' || field === 'conversationId') && !owner[field] && !owner.makeCharacter) {
      const kind = String(e.details['kind'] ?? '')
      const id = await added.ask({ file: name, kind, field, named: String(e.details['name'] ?? '') })
      if (id === anew) return add({ file, key: newKey(), owner: { makeCharacter: 'true' } })
      return id ? add({ file, key: newKey(), owner: { ...owner, [field]: id } }) : refused(field === 'characterId' ? shell.noCharacterChosen : shell.noChatChosen, kind)
    }
    if (e.retry !== 'no') return { ...refused(errorText(e)), again: () => enqueue([{ file, key, owner }]) }
    if (!move.running && (await isTavern(file))) {
      go('/settings/account')
      void move.archive(file)
      return undefined
    }
    return refused((await isBackup(file)) ? shell.backupFile : e.details['folder'] ? shell.settingsFile : e.details['as'] ? shell.unknownFile : errorText(e))
  }
}

/** readable reports whether a file can be read: a folder cannot. */
const readable = (file: File) => file.slice(0, 1).arrayBuffer().then(() => true, () => false)

/** isBackup looks at the end of a zip file, where its members are listed. */
const isBackup = async (file: File) => /\.zip$/i.test(file.name) && (await file.slice(-65_536).text()).includes('manifest.json')

/** isTavern looks there for the folders of SillyTavern. */
const isTavern = async (file: File) => /\.zip$/i.test(file.name) && /(^|[^\w])(characters|chats|worlds|OpenAI Settings)\//.test(await file.slice(-4_194_304).text())

/** taken puts what was imported into the lists, and says where it is. */
function taken(file: string, got: Answer<'post', '/import'>): Added {
  const say = (kind: string, name: string, to: string): Added => ({ file, kind, name: plain((name || file).slice(0, 200)), to, warnings: got.warnings.map(remarkText), problem: '' })
  if ('character' in got) {
    characters.put(got.character)
    return say('character', got.character.name, '/characters/' + got.id)
  }
  if ('conversation' in got) {
    chats.put(got.conversation)
    return say('conversation', got.conversation.title, '/chats/' + got.id)
  }
  if ('resource' in got) {
    const { kind, name } = got.resource
    resources.put(got.resource)
    return say(kind, name, `/library/${kind}/${got.id}`)
  }
  if ('save' in got) return say('save', got.save.description, '/chats/' + got.save.conversationId)
  const { created, skipped, failed } = got.memories
  const memories = say('memories', '', '/memory/' + got.id)
  if (skipped > 0) memories.warnings.push(shell.knownMemories(skipped))
  memories.warnings.push(...failed.map((f) => shell.failedLine(f.line, f.detail)))
  return created > 0 ? memories : { ...memories, problem: shell.noNewMemories }
}
