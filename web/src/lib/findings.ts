// Findings of the server in documents: remarks on imported files, and what a check reports.

import { plain } from './format'
import { language } from './language.svelte'

// The server describes findings exactly, in English; these say the same in general words.
const chinese: Record<string, string> = {
  asset_dropped: '有附带资源无法读取或过大，未导入',
  assets_dropped: '附带资源未导入',
  book_not_bound: '世界书未能绑定到角色',
  book_replaced: '文件夹中的世界书与角色卡内的副本不同，使用文件夹中的',
  character_made: '文件夹中没有角色卡，已新建角色',
  damaged_chunk: '图片中有损坏的角色卡数据，已忽略',
  deprecated_macro: '旧写法的宏，仍然有效',
  dropped_state: '此状态的数据不可用，未导入',
  duplicate_identifier: '标识符重复，只有第一个有效',
  earlier_state: '以前导入过此文件的另一状态，两者并存',
  empty: '内容为空',
  first_only: '文件中有多段聊天，只读取了第一段',
  group: '群组在这里是一个角色，代表所有成员回复',
  group_chat: '群聊已合并为与一个角色的聊天',
  invalid_character: '已移除无效字符',
  invalid_pattern: '正则表达式无法使用',
  invalid_utf8: '已替换无效的 UTF-8 字节',
  invalid_world_book: '内嵌的世界书无效，未使用',
  kept_as_file: '文件已保存，页面不显示',
  matches_everything: '几乎在每条消息中都会命中',
  matches_often: '在大多数聊天中都会命中',
  missing_book: '所用的世界书不在文件中，请另行导入并绑定',
  missing_member: '群组成员的角色卡不在文件夹中',
  missing_preset: '使用的预设不在文件夹中',
  name_changed: '名称已更改',
  name_mirrored: '使用了外层的名称',
  needs_note: '仅在聊天有作者注释时使用',
  newer_version: '由更新的版本生成，按已知版本读取',
  no_counterpart: '这里没有对应的设置',
  no_history: '预设未列出聊天记录，将加在末尾',
  no_persona: '没有使用此图片的人设，仅作为文件保存',
  not_imported: '有内容未导入',
  not_taken: '此部分未导入',
  odd_keys: '关键词不是文字列表，已按列表读取',
  over_budget: '内容超过建议的 Token 数',
  private_field: '已移除作者的网址和密钥',
  regex_key: '关键词按普通文字匹配，不作为正则表达式',
  settings_refused: '设置的值不可用，未采用',
  slow_pattern: '正则表达式可能很慢',
  switched_on: '设置中的正则脚本原为关闭，现已开启',
  taken_apart: '不是同一聊天的分支，作为单独的聊天导入',
  unknown_decorator: '无法识别的 @@ 指令，不起作用',
  unknown_field: '未知的内容，仅保留，不起作用',
  unknown_identifier: '列表引用了不存在的标识符',
  unknown_macro: '未知的宏，将原样发送',
  unknown_spec: '未知的角色卡版本，按 V3 读取',
  unlisted_field: '预设未列出此字段，将加在聊天之前',
  unreachable: '永远不会被使用',
  unreadable_date: '有消息没有可读的日期，使用相邻消息的时间',
  unsafe_path: '有路径不安全的文件，未导入',
  unusable_picture: '头像图片无法使用',
  unused_field: '此内容不起作用',
  unused_macro: '此宏在这里没有作用',
  unused_sampler: '文本补全的采样参数仅保留，不起作用；请在预设或设置中调整',
  unused_template: '文本补全模板仅保留，不起作用；模型服务器使用模型自己的模板',
}

/** findingText describes a finding in the language of the page. */
export function findingText(f: { code: string; detail: string }): string {
  const detail = plain(f.detail.slice(0, 500))
  return language.current === 'zh' && Object.hasOwn(chinese, f.code) ? `${chinese[f.code]}（${detail}）` : detail
}

/** remarkText also says where in an imported file it is. */
export const remarkText = (f: { path: string; code: string; detail: string }) => (f.path ? `${plain(f.path.slice(0, 200))}: ` : '') + findingText(f)
