// The folder of a SillyTavern user, as a browser hands it over.

import type { Entry } from './zip'

export interface Found {
  path: string
  file: File
}

const marks = ['characters', 'chats', 'groups', 'group chats', 'worlds', 'openai settings', 'user avatars', 'settings.json']

/** userFolder finds the folder of the user among paths: "" or one that ends with a slash. */
export function userFolder(paths: string[]): string | undefined {
  const found = new Map<string, Set<string>>()
  for (const path of paths) {
    const parts = path.split('/')
    for (const [i, part] of parts.entries()) {
      const name = part.toLowerCase()
      const last = i === parts.length - 1
      if (!marks.includes(name) || last !== (name === 'settings.json')) continue
      const root = parts.slice(0, i).map((p) => p + '/').join('')
      found.set(root, (found.get(root) ?? new Set()).add(name))
    }
  }
  return [...found].sort((a, b) => b[1].size - a[1].size || a[0].length - b[0].length)[0]?.[0]
}

/** What the server never takes; of these only the names are sent. */
const closed = /^(thumbnails|backups|vectors|extensions|scripts|assets|themes|movingUI|QuickReplies|user\/workflows)\/|^(secrets\.json|cookie-secret\.txt|stats\.json|content\.log|image-metadata\.json)$/i

/** entriesOf are the files of the user as entries of an archive. */
export const entriesOf = (files: Found[], root: string): Entry[] =>
  files.filter((f) => f.path.startsWith(root)).map(({ path, file }) => ({ path: path.slice(root.length), file: closed.test(path.slice(root.length)) ? null : file }))

/** chosen are the files of an input that takes folders. */
export const chosen = (list: FileList): Found[] => [...list].map((file) => ({ path: file.webkitRelativePath || file.name, file }))

/** dropped reads all files of folders that were dropped. */
export async function dropped(folders: FileSystemEntry[]): Promise<Found[]> {
  const all: Found[] = []
  const walk = async (entry: FileSystemEntry): Promise<void> => {
    if (entry.isFile) {
      const file = await new Promise<File | null>((done) => (entry as FileSystemFileEntry).file(done, () => done(null)))
      if (file) all.push({ path: entry.fullPath.replace(/^\//, ''), file })
      return
    }
    const reader = (entry as FileSystemDirectoryEntry).createReader()
    for (;;) {
      const some = await new Promise<FileSystemEntry[]>((done, fail) => reader.readEntries(done, fail))
      if (some.length === 0) return
      for (const e of some) await walk(e)
    }
  }
  for (const f of folders) await walk(f)
  return all
}

/** foldersIn are the folders among what is dropped. They must be asked for before anything is awaited. */
export const foldersIn = (data: DataTransfer | null): FileSystemEntry[] =>
  [...(data?.items ?? [])].flatMap((item) => {
    const entry = item.webkitGetAsEntry?.()
    return entry?.isDirectory ? [entry] : []
  })
