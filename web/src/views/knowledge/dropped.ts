// Files that were dropped, those in folders too, with the names of their folders.

export interface Dropped {
  file: File
  name: string
}

const most = 5000 // files of one drop

/** hidden are files such as .DS_Store, which nobody means. */
const hidden = (name: string) => name.startsWith('.') || name === 'Thumbs.db'

/** chosen are the files of a field. */
export const chosen = (files: Iterable<File>): Dropped[] =>
  [...files].filter((f) => !hidden(f.name)).map((file) => ({ file, name: file.webkitRelativePath || file.name }))

/** dropped reads what was dropped. The data are only there during the event: call it at once. */
export async function dropped(data: DataTransfer): Promise<Dropped[]> {
  const entries = [...data.items].map((i) => i.webkitGetAsEntry?.() ?? null)
  if (entries.every((e) => e === null)) return chosen(data.files)
  const all: Dropped[] = []
  for (const e of entries) if (e) await walk(e, '', all)
  return all
}

async function walk(entry: FileSystemEntry, folder: string, all: Dropped[]): Promise<void> {
  if (hidden(entry.name) || all.length >= most) return
  const name = folder + entry.name
  if (entry.isFile) {
    const file = await new Promise<File | null>((done) => (entry as FileSystemFileEntry).file(done, () => done(null)))
    if (file) all.push({ file, name })
    return
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader()
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((done) => reader.readEntries(done, () => done([])))
    if (some.length === 0) return
    for (const e of some) await walk(e, name + '/', all)
  }
}
