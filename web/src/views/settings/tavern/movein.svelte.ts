// Moving in from SillyTavern: a folder or an archive is sent for a trial, whose report is shown, and then once more to
// be imported. An import goes on when the page is closed.

import { Failure, type Answer } from '@nodest/client'
import { errorText } from '../../../lib/words'
import { listen, rest } from '../../../state/server'
import { send, type Sending } from '../../knowledge/send'
import { dropped, entriesOf, userFolder, type Found } from './folder'
import { moveWords as w } from './words'
import { mostBytes, mostEntries, sizeOf, zip } from './zip'

export type Import = Answer<'get', '/sillytavern/imports/{id}'>
export type ReportFile = Answer<'get', '/sillytavern/imports/{id}/files'>['items'][number]
export type Outcome = ReportFile['outcome']

let source = $state.raw<Blob>()
let name = ''
let makeCharacters = $state(true)
let step = $state<'' | 'reading' | 'sending'>('')
let share = $state(0)
let shown = $state.raw<Import>()
let problem = $state('')
let stopper: (() => void) | undefined

const open = (i: Import) => i.state === 'queued' || i.state === 'running'

listen({
  event: (e) => {
    if (e.ev !== 'sillytavern.import') return
    const next = e.data.import
    if (next.id === shown?.id && (open(shown) || !open(next))) shown = next
  },
  snapshot: () => (shown ? move.refresh() : undefined),
})

/** run shows what went wrong in f. */
async function run(f: () => Promise<void>) {
  problem = ''
  try {
    await f()
  } catch (e) {
    if (e instanceof Failure) problem = e.code === 'cancelled' ? '' : errorText(e)
    else if (!(e instanceof DOMException)) throw e
    else if (e.name !== 'AbortError') problem = w.unreadable
  } finally {
    step = ''
    stopper = undefined
  }
}

async function upload(dryRun: boolean) {
  if (!source) return
  step = 'sending'
  share = 0
  const form = new FormData()
  form.append('dryRun', String(dryRun))
  form.append('makeCharacters', String(makeCharacters))
  form.append('file', source, name)
  const sending: Sending<Import> = send('POST', rest.url('/sillytavern/imports'), form, { progress: (s) => (share = s) })
  stopper = sending.cancel
  shown = await sending.done
  void move.follow()
}

export const move = {
  get step() {
    return step
  },
  /** How much of the step is done, from 0 to 1. */
  get share() {
    return share
  },
  get shown() {
    return shown
  },
  get problem() {
    return problem
  },
  get running() {
    return step !== '' || (shown !== undefined && open(shown))
  },
  /** Whether something was chosen on this page. */
  get chosen() {
    return source !== undefined
  },
  /** Whether what was tried can be imported. */
  get ready() {
    return source !== undefined && shown?.dryRun === true && shown.state === 'done' && shown.taken > 0
  },
  get makeCharacters() {
    return makeCharacters
  },
  set makeCharacters(yes: boolean) {
    makeCharacters = yes
  },

  /** folder tries the files of a folder. */
  folder: (files: Found[] | Promise<Found[]>) =>
    run(async () => {
      step = 'reading'
      share = 0
      shown = undefined
      const all = await files
      const root = userFolder(all.map((f) => f.path))
      if (root === undefined) return void (problem = w.noFolder)
      const entries = entriesOf(all, root)
      if (sizeOf(entries) > mostBytes || entries.length > mostEntries) return void (problem = w.tooLarge)
      const stop = new AbortController()
      stopper = () => stop.abort()
      source = await zip(entries, (n) => (share = n / entries.length), stop.signal)
      name = (root.split('/').at(-2) ?? 'SillyTavern') + '.zip'
      await upload(true)
    }),

  /** entries tries folders that were dropped. */
  entries: (folders: FileSystemEntry[]) => move.folder(dropped(folders)),

  /** archive tries a zip file. */
  archive: (file: File) =>
    run(async () => {
      shown = undefined
      source = file
      name = file.name
      await upload(true)
    }),

  /** take imports what was tried. */
  take: () => run(() => upload(false)),

  /** follow asks how far it is until it has ended, for events may be late. */
  async follow() {
    const id = shown?.id
    while (shown?.id === id && shown && open(shown)) {
      await new Promise((done) => setTimeout(done, 1500))
      if (shown?.id === id) await move.refresh()
    }
  },

  async refresh() {
    const id = shown?.id
    if (!id) return
    const got = await rest.get('/sillytavern/imports/{id}', { path: { id } }).catch(() => undefined)
    if (got && shown?.id === id) shown = got
  },

  /** stop ends what runs. What was taken stays. */
  async stop() {
    stopper?.()
    const id = shown?.id
    if (id && step === '' && shown && open(shown)) await run(async () => void (shown = await rest.post('/sillytavern/imports/{id}/stop', { path: { id } })))
  },

  /** latest shows the newest import, if nothing is shown. */
  async latest() {
    if (shown || step) return
    const page = await rest.get('/sillytavern/imports', { query: { limit: 1 } }).catch(() => undefined)
    const newest = page?.items[0]
    if (!newest || shown || step || (newest.dryRun && !open(newest))) return
    shown = newest
    void move.follow()
  },

  /** forget takes the report away; what was imported stays. */
  forget: () =>
    run(async () => {
      const id = shown?.id
      source = undefined
      shown = undefined
      if (id) await rest.delete('/sillytavern/imports/{id}', { path: { id } })
    }),
}

/** filesOf reads a page of the files of a report; empty = all. */
export const filesOf = (id: string, outcome: Outcome | '', kind: string, cursor: string) =>
  rest.get('/sillytavern/imports/{id}/files', { path: { id }, query: { limit: 50, ...(outcome && { outcome }), ...(kind && { kind: kind as ReportFile['kind'] }), ...(cursor && { cursor }) } })
