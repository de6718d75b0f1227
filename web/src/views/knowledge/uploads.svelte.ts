// The files that are being uploaded, a few at a time. They go on while the user looks at
// something else; what went wrong stays until it is dismissed.

import { Failure, newKey, type Answer } from '@nodest/client'
import { plain } from '../../lib/format'
import { errorText } from '../../lib/words'
import { rest } from '../../state/server'
import { fileWords as w } from './fileWords'
import { send, type Sending } from './send'

type Stored = Answer<'post', '/files'>
type Unpacked = Answer<'post', '/knowledge-bases/{id}/import'>

const atOnce = 3

export class Upload {
  state = $state<'waiting' | 'sending' | 'storing' | 'done' | 'failed'>('waiting')
  /** The part that is sent, from 0 to 1. */
  sent = $state(0)
  /** Why it failed. */
  problem = $state('')
  /** A remark about an upload that is done. */
  remark = $state('')
  /** The files of an archive that were not added. */
  left = $state.raw<{ name: string; detail: string }[]>([])
  readonly key = newKey()
  private sending: Sending<unknown> | undefined

  constructor(
    readonly file: File,
    readonly name: string,
    readonly baseId: string,
  ) {}

  get archive() {
    return this.baseId !== '' && /\.zip$/i.test(this.name)
  }

  async run() {
    this.state = 'sending'
    this.problem = ''
    try {
      await this.attempt()
      this.state = 'done'
    } catch (e) {
      if (!(e instanceof Failure)) throw e
      this.problem = e.code === 'cancelled' ? '' : errorText(e)
      this.state = e.code === 'cancelled' ? 'done' : 'failed'
    }
  }

  private async attempt() {
    if (!(await this.readable())) throw new Failure({ code: 'bad_request', detail: w.unreadable })
    const form = new FormData()
    if (this.baseId && !this.archive) form.append('knowledgeBaseId', this.baseId) // before the file
    form.append('file', this.file, this.name)
    const url = this.archive ? rest.url('/knowledge-bases/{id}/import', { id: this.baseId }) : rest.url('/files')
    const progress = (share: number) => {
      this.sent = share
      if (share === 1 && this.state === 'sending') this.state = 'storing'
    }
    if (this.archive) {
      this.sending = send<Unpacked>('POST', url, form, { key: this.key, progress })
      const got = (await this.sending.done) as Unpacked
      this.left = got.failed
      this.remark = w.unzipped(got.files.length)
    } else {
      this.sending = send<Stored>('POST', url, form, { key: this.key, progress })
      const { file } = (await this.sending.done) as Stored
      if (file.duplicate) this.remark = w.duplicate(plain(file.name))
    }
  }

  /** readable reports whether the file can be read: it may have been moved since. */
  private readable = () =>
    this.file.slice(0, 1).arrayBuffer().then(
      () => true,
      () => false,
    )

  cancel() {
    if (this.state === 'waiting') this.state = 'done'
    this.sending?.cancel()
  }

  /** True if the upload is shown: one that went well needs no mention. */
  get shown() {
    return this.state !== 'done' || this.remark !== ''
  }
}

let list = $state.raw<Upload[]>([])
let running = 0

const open = (u: Upload) => u.state === 'waiting' || u.state === 'sending' || u.state === 'storing'

async function next() {
  if (running >= atOnce) return
  const u = list.find((u) => u.state === 'waiting')
  if (!u) return
  running++
  try {
    await u.run()
  } finally {
    running--
    list = list.filter((u) => u.shown)
    void next()
  }
}

function start() {
  for (let i = 0; i < atOnce; i++) void next()
}

addEventListener('beforeunload', (e) => {
  if (list.some(open)) e.preventDefault()
})

export const uploads = {
  /** of lists those for a knowledge base; '' = those that are for none. */
  of: (baseId: string) => list.filter((u) => u.baseId === baseId && u.shown),
  add(files: { file: File; name: string }[], baseId: string) {
    list = [...list, ...files.map(({ file, name }) => new Upload(file, name, baseId))]
    start()
  },
  again(u: Upload) {
    u.state = 'waiting'
    u.sent = 0
    start()
  },
  cancel(u: Upload) {
    u.cancel()
    list = list.filter((u) => u.shown)
  },
  dismiss(gone: Upload[]) {
    list = list.filter((u) => !gone.includes(u) || open(u))
  },
  open,
}
