// The post that is being written. It is kept over a reload, with its pictures: they are
// uploaded when they are chosen.

import { drafts } from '../../lib/drafts'
import { attempt, notes, succeeds } from '../../lib/notes.svelte'
import { rest } from '../../state/server'
import { circleWords as w } from './words'

const key = 'circle'
export const most = 4 // pictures of a post

interface Picture {
  id: string
  name: string
}

class PostDraft {
  text = $state('')
  /** Whose post it is; '' is the user's. */
  authorId = $state('')
  pictures = $state.raw<Picture[]>([])
  uploading = $state(0)

  constructor() {
    try {
      const kept = JSON.parse(drafts.get(key) || '{}')
      if (typeof kept.text === 'string') this.text = kept.text
      if (typeof kept.authorId === 'string') this.authorId = kept.authorId
      if (Array.isArray(kept.pictures)) this.pictures = kept.pictures.filter((p: unknown) => typeof (p as Picture)?.id === 'string' && typeof (p as Picture).name === 'string').slice(0, most)
    } catch {
      // Something else was stored there.
    }
  }

  get empty() {
    return this.text.trim() === '' && this.pictures.length === 0
  }

  keep() {
    const { text, authorId, pictures } = this
    drafts.set(key, text || authorId || pictures.length > 0 ? JSON.stringify({ text, authorId, pictures }) : '')
  }

  async add(files: Iterable<File>) {
    for (const file of files) {
      if (this.pictures.length + this.uploading >= most) return void notes.show(w.tooManyPictures, { kind: 'error' })
      const form = new FormData()
      form.append('file', file)
      this.uploading++
      const got = await attempt(() => rest.post('/attachments', { body: form }))
      this.uploading--
      if (got) this.pictures = [...this.pictures, { id: got.id, name: file.name }]
    }
  }

  async remove(p: Picture) {
    this.pictures = this.pictures.filter((other) => other !== p)
    await rest.delete('/attachments/{id}', { path: { id: p.id } }).catch(() => undefined) // the server tidies up
  }

  /** forget drops a picture that the server does not have any more. */
  forget(p: Picture) {
    this.pictures = this.pictures.filter((other) => other !== p)
  }

  async publish(): Promise<boolean> {
    const { text, authorId, pictures } = this
    const body = { text: text.trim(), ...(authorId && { authorId }), ...(pictures.length > 0 && { images: pictures.map((p) => p.id) }) }
    if (!(await succeeds(() => rest.post('/circle/posts', { body })))) return false
    this.text = ''
    this.pictures = []
    return true
  }
}

export const draft = new PostDraft()
