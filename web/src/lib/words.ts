// Texts that several parts of the page share, and the words for errors.

import type { Code, Failure } from '@nodest/client'
import { labelAt } from './fields'
import { plain } from './format'
import { language, words } from './language.svelte'
import { exceeded } from './quotas'

export const common = words(
  {
    cancel: 'Cancel',
    save: 'Save',
    close: 'Close',
    delete: 'Delete',
    edit: 'Edit',
    undo: 'Undo',
    rename: 'Rename',
    export: 'Export',
    archive: 'Archive',
    unarchive: 'Restore from archive',
    search: 'Search',
    copy: 'Copy',
    copied: 'Copied',
    loading: 'Loading…',
    colon: ': ',
    more: 'More',
    moreFor: (name: string) => `More: ${name}`,
    preview: 'Preview',
    done: 'Done',
    back: 'Back',
    menu: 'Menu',
    name: 'Name',
    you: 'You',
    unnamed: 'Without a name',
    none: 'None',
    table: 'Table',
    nothingFound: 'Nothing found.',
    searchCharacters: 'Search characters',
    deleteTitle: (name: string) => `Delete ${name}?`,
    deleted: (name: string) => `${name} was deleted.`,
    showMore: 'Show more',
    pictureAt: (host: string) => `picture at ${host}`,
    pictureBroken: 'picture that cannot be shown',
    pictureTooLarge: (size: string) => `picture of ${size}, too large to show`,
    picture: (n: number, of: number) => `Picture ${n} of ${of}`,
    openPicture: (name: string) => `Open the picture ${name}`,
    previousPicture: 'Previous picture',
    nextPicture: 'Next picture',
    rest: (n: string) => `Show more (${n} characters)`,
    dismiss: 'Dismiss',
    nameless: 'A character needs a name.',
    required: (label: string) => `“${label}” must not be empty.`,
    tryAgain: 'Try again',
    unsaved: 'Not saved yet',
    saved: 'Saved',
    removedLine: 'Removed',
    addedLine: 'Added',
    sameLines: (n: number) => (n === 1 ? '1 line is the same' : `${n} lines are the same`),
    noText: 'No text.',
    noDifference: 'No difference.',
  },
  {
    cancel: '取消',
    save: '保存',
    close: '关闭',
    delete: '删除',
    edit: '编辑',
    undo: '撤销',
    rename: '重命名',
    export: '导出',
    archive: '归档',
    unarchive: '取消归档',
    search: '搜索',
    copy: '复制',
    copied: '已复制',
    loading: '加载中…',
    colon: '：',
    more: '更多',
    moreFor: (name: string) => `更多：${name}`,
    preview: '预览',
    done: '完成',
    back: '返回',
    menu: '菜单',
    name: '名称',
    you: '你',
    unnamed: '未命名',
    none: '无',
    table: '表格',
    nothingFound: '没有找到。',
    searchCharacters: '搜索角色',
    deleteTitle: (name: string) => `删除 ${name}？`,
    deleted: (name: string) => `已删除 ${name}。`,
    showMore: '显示更多',
    pictureAt: (host: string) => `${host} 上的图片`,
    pictureBroken: '无法显示的图片',
    pictureTooLarge: (size: string) => `图片 ${size}，过大，未显示`,
    picture: (n: number, of: number) => `图片 ${n}/${of}`,
    openPicture: (name: string) => `打开图片 ${name}`,
    previousPicture: '上一张',
    nextPicture: '下一张',
    rest: (n: string) => `显示更多（还有 ${n} 字符）`,
    dismiss: '关闭提示',
    nameless: '角色需要一个名字。',
    required: (label: string) => `“${label}”不能为空。`,
    tryAgain: '重试',
    unsaved: '尚未保存',
    saved: '已保存',
    removedLine: '移除',
    addedLine: '添加',
    sameLines: (n: number) => `${n} 行相同`,
    noText: '没有文字。',
    noDifference: '没有差异。',
  },
)

// The server explains errors in English; these say the same in general words.
const chinese: Record<Code, string> = {
  network: '无法连接服务器。',
  bad_request: '请求无效。',
  unknown_command: '服务器不认识此操作，请重新加载页面。',
  invalid_field: '有一项内容无效。',
  unauthenticated: '请先登录。',
  token_expired: '登录已过期，请重新登录。',
  forbidden: '没有权限。',
  not_found: '找不到该内容，可能已被删除。',
  conflict: '内容已在别处更改，请重新加载。',
  busy: '正在生成另一条回复。',
  in_progress: '该操作正在进行。',
  not_configured: '所需的服务尚未设置。',
  precondition_failed: '内容已在别处更改，请重新加载。',
  too_large: '内容过大。',
  unsupported_media_type: '不支持这种文件类型。',
  key_reused: '此操作与先前的另一操作冲突，请重试。',
  unsupported_card: '无法读取该角色卡。',
  invalid_world_book: '无法读取该世界书。',
  invalid_import: '无法导入该文件。',
  newer_version: '该文件由更新的版本生成。',
  rate_limited: '服务器暂时无法接受此请求，请稍后再试。',
  too_many_generations: '同时生成的回复过多。',
  quota_exceeded: '额度已用完。',
  cancelled: '已取消。',
  internal: '服务器出错。',
  storage_full: '服务器存储空间已满。',
  storage_busy: '服务器的数据库繁忙，请重试。',
  storage_unavailable: '服务器的数据库暂时不可用，请重试。',
  upstream_auth: '服务商拒绝了密钥。',
  upstream_quota: '服务商的额度已用完。',
  upstream_rate_limited: '服务商限制了请求频率，请稍后再试。',
  upstream_unavailable: '服务商暂时不可用。',
  upstream_bad_answer: '服务商返回的内容无法使用。',
  upstream_timeout: '服务商响应超时。',
  model_not_found: '服务商没有这个模型。',
  blocked_by_provider: '内容被模型服务的安全策略拦截。',
  empty_reply: '模型没有给出内容。',
  context_too_large: '提示词超出模型的上下文。',
  page_unreadable: '无法读取该网页。',
  shutting_down: '服务器正在重启。',
}

// Faults of a field, by the server's code.
const chineseFields: Record<string, string> = {
  required: '不能为空。',
  range: '超出允许的范围。',
  type: '类型不正确。',
  value: '不能使用这个值。',
  enum: '不能使用这个值。',
  unknown: '无法识别。',
  format: '格式不正确。',
  encoding: '含有无法使用的字符。',
  blank: '不能全是空白。',
  common: '这个密码最容易被猜到，请换一个。',
  wrong: '不正确。',
  length: '长度超出允许的范围。',
  invalid: '不能使用这个值。',
}

/**
 * errorText describes an error in the language of the page. Fields have the labels of
 * the form that is shown. The message may come from a provider.
 */
export function errorText(e: Pick<Failure, 'code' | 'message'> & Partial<Pick<Failure, 'errors' | 'details'>>): string {
  const limit = e.code === 'quota_exceeded' && e.details ? exceeded(e.details) : ''
  if (limit) return limit
  const field = e.errors?.[0]
  if (field?.code === 'required' && e.code === 'unsupported_card') return common.nameless
  const label = field && labelAt(field.field)
  if (label && field.code === 'required') return common.required(label)
  const message = plain(String(label ? `${label}: ${field.detail}` : e.message).slice(0, 600))
  if (label && language.current === 'zh' && Object.hasOwn(chineseFields, field.code)) return `${label}：${chineseFields[field.code]}（${plain(field.detail.slice(0, 600))}）`
  const general = language.current === 'zh' && Object.hasOwn(chinese, e.code) ? chinese[e.code] : ''
  return general ? (e.code === 'network' ? general : `${general}（${message}）`) : message
}

/** storedText is errorText of an error that the server has stored. */
export const storedText = (e: { code: Code; detail: string; details?: Failure['details'] }) => errorText({ ...e, message: e.detail })
