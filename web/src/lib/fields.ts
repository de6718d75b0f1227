// The fields of the form that is shown, by the paths that the server calls them.

const parts = (path: string) => String(path).split(/[.[\]]+/).filter(Boolean)

/**
 * fieldAt finds the field whose path (data-path) or name is the end of a path of the
 * API, such as temperature of settings.temperature. Of lists, the whole path has to be
 * known: only some of their elements are shown.
 */
export function fieldAt(path: string): HTMLInputElement | undefined {
  const form = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.querySelector('main') ?? document.body
  const wanted = parts(path)
  let found: HTMLInputElement | undefined
  let length = 0
  for (const field of form.querySelectorAll<HTMLInputElement>('[data-path], input[name], select[name], textarea[name]')) {
    const own = parts(field.dataset.path ?? field.name)
    const fits = own.length > length && own.every((part, i) => part === wanted.at(i - own.length)) && !wanted.slice(0, -own.length).some((part) => /^\d+$/.test(part))
    if (fits) [found, length] = [field, own.length]
  }
  return found
}

/** labelAt is what the form calls the field of a path; empty if it does not show one. */
export function labelAt(path: string): string {
  const label = fieldAt(path)?.labels?.[0]
  return (label?.querySelector('span') ?? label)?.textContent?.trim() ?? ''
}

/** point shows beside the field of a path what is wrong with it, until something is changed. */
export function point(path: string, problem: string) {
  const field = fieldAt(path)
  if (!field?.checkVisibility()) return
  field.setCustomValidity(problem)
  field.focus()
  field.reportValidity()
  addEventListener('input', () => field.setCustomValidity(''), { capture: true, once: true })
}
