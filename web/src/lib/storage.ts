// The storage of the page in the browser. Where localStorage is disabled or full, values are kept
// until the page is closed. Other users of the browser may have changed them: check them.

const unkept = new Map<string, string>()

/** kept runs something with localStorage; it returns otherwise if that fails. */
function kept<T>(run: () => T, otherwise: T): T {
  try {
    return run()
  } catch {
    return otherwise
  }
}

export const storage = {
  get(name: string): string | null {
    return unkept.get(name) ?? kept(() => localStorage.getItem(name), null)
  },
  set(name: string, value: string) {
    unkept.set(name, value)
    kept(() => {
      localStorage.setItem(name, value)
      unkept.delete(name)
    }, undefined)
  },
  remove(name: string) {
    unkept.delete(name)
    kept(() => localStorage.removeItem(name), undefined)
  },
  /** The names that begin with a prefix. */
  names(prefix: string): string[] {
    const all = [...kept(() => Object.keys(localStorage), []), ...unkept.keys()]
    return [...new Set(all)].filter((name) => name.startsWith(prefix))
  },
}
