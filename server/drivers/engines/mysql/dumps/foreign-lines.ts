/**
 * Lines of a dump that this server or tenant cannot have: statements of mysqldump (MySQL 8 and 9)
 * and mariadb-dump about the server, its users, its replication and its other databases, and table
 * options that MariaDB spells differently.
 */
import { isMessage, MESSAGE_REASON } from '../../../../databases/file-start.ts';
import type { LeftOut } from '../../../../databases/left-out.ts';
import { KnownNames } from './known-names.ts';
import { ONE, OwnDatabase } from './names/own-database.ts';
import { QUOTED_TEXT } from './names/sql-parts.ts';
import { withoutNewFunctions } from './newer-functions.ts';
import { TableLines } from './table-lines.ts';
import type { TriedPrograms } from './tried-programs.ts';

export interface LenientLoad {
  readonly leftOut: LeftOut;
  /** Full names of all collations of the server. */
  readonly collations: ReadonlySet<string>;
  /** The server has uuid_v4() and uuid_v7(), as MariaDB from 11.7 on. */
  readonly hasUuidVersions: boolean;
  /** Functions of MySQL that the server does not have. */
  readonly absentFunctions: ReadonlySet<string>;
  /** Databases that the user of the load reaches. */
  readonly databases: ReadonlySet<string>;
  /** The storage engine forced for all tables; null: the dump chooses it. */
  readonly enforcedEngine: string | null;
  /** Programs and views of dumps are tried out in it; missing: the server is no MariaDB. */
  readonly tried?: TriedPrograms | undefined;
}

/** The beginning of a statement, possibly in a comment that newer servers execute. */
const OPEN = '^(?:/\\*M?!\\d* ?)?';
const SPACE = '(?: |/\\*!\\d+ [^*]*\\*/)+';
const REFUSED: readonly (readonly [RegExp, string])[] = (
  [
    [`(?:CREATE|ALTER|DROP)${SPACE}(?:DATABASE|SCHEMA)\\b`, ONE],
    [
      'SET (?:(?:@@)?(?:GLOBAL|PERSIST|PERSIST_ONLY)(?:\\.| )|(?:SESSION )?(?:MAX_ALLOWED_PACKET|NET_BUFFER_LENGTH)\\b)',
      'only server administrators can change server settings',
    ],
    [
      'SET (?:(?:@@)?SESSION(?:\\.| )|@@)?(?:SQL_LOG_BIN|SQL_LOG_OFF|BINLOG_\\w+|GTID_\\w+|PSEUDO_\\w+|SERVER_ID)\\b',
      'there is no replication log here',
    ],
    [
      'SET (?:(?:@@)?SESSION(?:\\.| )|@@)?(?:SQL_REQUIRE_PRIMARY_KEY|SQL_GENERATE_INVISIBLE_PRIMARY_KEY|' +
        'INFORMATION_SCHEMA_STATS_EXPIRY|DEFAULT_COLLATION_FOR_UTF8MB4|DEFAULT_TABLE_ENCRYPTION|GROUP_REPLICATION_\\w+|' +
        'SHOW_CREATE_TABLE_\\w+|OPTIMIZER_TRACE\\w*|WINDOWING_\\w+|CTE_\\w+|RANGE_OPTIMIZER_\\w+)\\b',
      'MariaDB has no such setting',
    ],
    [
      '(?:CHANGE (?:MASTER|REPLICATION)|(?:START|STOP|RESET) (?:SLAVE|REPLICA|MASTER|GROUP_REPLICATION)|PURGE )',
      'replication is not available here',
    ],
    [
      '(?:(?:CREATE|ALTER|DROP|RENAME)(?: OR REPLACE)? (?:USER|ROLE)|GRANT|REVOKE|SET (?:PASSWORD|DEFAULT ROLE|ROLE))\\b',
      'users and privileges are server-wide, and a load changes only this database',
    ],
    ['SET (?:(?:@@)?SESSION(?:\\.| )|@@)?OPTIMIZER_SWITCH\\b', 'its values differ from server to server'],
    ['FLUSH ', 'FLUSH is not needed'],
    ['(?:(?:UN)?LOCK INSTANCE|BACKUP (?:STAGE|LOCK|UNLOCK))\\b', 'a load locks only what it replaces'],
    ['CALL (?:`?mysql`?|`?sys`?)\\s*\\.', 'only server administrators can call programs of the server'],
    [
      'ANALYZE (?:LOCAL |NO_WRITE_TO_BINLOG )?TABLE [^;]* (?:UPDATE|DROP) HISTOGRAM ',
      'MariaDB keeps histograms in another way',
    ],
    [
      '(?:(?:UN)?INSTALL |(?:CREATE|ALTER|DROP)(?: OR REPLACE)? (?:SERVER|TABLESPACE|LOGFILE|UNDO)\\b)',
      'it concerns the server, not this database',
    ],
  ] as const
).map(([words, reason]) => [new RegExp(OPEN + words, 'i'), reason]);
/** Statements whose lines are data. */
const DATA = /^(?:INSERT|REPLACE|UPDATE|DELETE|--|#)/i;
const COLLATION = /\b([a-z0-9]+)(_[a-z0-9_]*?)?_(0900|uca1400)(_nopad)?_(ai_ci|as_ci|as_cs|bin)(?:_ks)?\b/g;
/** A character set of MySQL that MariaDB lacks; the text of a dump is UTF-8. */
const CHARACTERS = /\b(CHARACTER SET |CHARSET=|COLLATE[ =])gb18030(?:_(\w+))?/g;
const GB18030 = 'gb18030_chinese_ci';
/** Restores a session setting, as at the end of a dump. */
const RESTORED = new RegExp(`${OPEN}SET (?:SESSION |@@(?:SESSION\\.)?)?\\w+ *= *@(\\w+)(?: *\\*/)? *;$`, 'i');
const SETS_VARIABLE = /@(\w+) *:?=/g;
/** A mode of MySQL 8 alone, in a line that sets sql_mode. */
const MODE = /,TIME_TRUNCATE_FRACTIONAL\b|\bTIME_TRUNCATE_FRACTIONAL,?/;
const SETS_MODE = new RegExp(`${OPEN}SET .*\\bsql_mode\\b`, 'i');
const NAMES_COLLATION = /\bCOLLATE[ =]+$/i;
/** Up to the end of the line if it has no end there. */
const NEWER = /\/\*!8\d{4} (.*?)(?: ?\*\/|[\r\n]|$)/g;
/** Lines without any of these stay unchanged. */
const ASKED =
  /_(?:0900|uca1400)_|\/\*!8|GENERATED|INVISIBLE|gb18030|uuid|regexp_like|\bENGINE\b|\) TYPE=|timestamp\(|as json\)|any_value|\bvector\(/i;
/** A table option at the end of a statement, or on its own line. */
const ENGINE = /^((?:[^(]*\))? ?ENGINE ?=? ?)([A-Za-z]\w*)(?=[\s;,)]|$)/;
/** The engine of a partition. */
const OF_PARTITION = /^(\s*(?:\(\s*)?(?:SUB)?PARTITION .*? ENGINE ?= ?)([A-Za-z]\w*)(?=[\s,)]|$)/;
/** How MySQL 4 named the engine of a table. */
const TYPE = /^(\) )TYPE(?==[A-Za-z])/;
const GENERATED = /(\bGENERATED ALWAYS AS \((?:(?!\bGENERATED ALWAYS AS ).)*\) (?:VIRTUAL|STORED)) NOT NULL/;
/** An unused index in the form of MySQL Workbench. */
const INDEX =
  /^(\s*(?:UNIQUE |FULLTEXT |SPATIAL )?(?:KEY|INDEX) .*\)(?: USING \w+)?) INVISIBLE(?=\s*[,)]|\s*$)/;
const QUOTED = new RegExp(`(${QUOTED_TEXT.source})`);
/** Languages of MySQL's collations, with MariaDB's names. */
const LANGUAGES: Readonly<Record<string, string>> = {
  cs: 'czech',
  da: 'danish',
  de_pb: 'german2',
  eo: 'esperanto',
  es: 'spanish',
  es_trad: 'spanish2',
  et: 'estonian',
  hr: 'croatian',
  hu: 'hungarian',
  is: 'icelandic',
  la: 'roman',
  lt: 'lithuanian',
  lv: 'latvian',
  nb: 'danish',
  pl: 'polish',
  ro: 'romanian',
  sk: 'slovak',
  sl: 'slovenian',
  sv: 'swedish',
  tr: 'turkish',
  vi: 'vietnamese',
};

export class ForeignLines {
  readonly #leftOut: LeftOut;
  readonly #collations: ReadonlySet<string>;
  readonly #hasUuidVersions: boolean;
  readonly #enforcedEngine: string | null;
  readonly #told = new KnownNames();
  readonly #tables: TableLines;
  readonly #own: OwnDatabase;
  #isData = false;
  /** Variables that the text has set so far. */
  readonly #set = new KnownNames();

  constructor({ leftOut, collations, databases, hasUuidVersions, enforcedEngine }: LenientLoad) {
    this.#own = new OwnDatabase(leftOut, databases);
    this.#enforcedEngine = enforcedEngine;
    this.#leftOut = leftOut;
    this.#collations = collations;
    this.#hasUuidVersions = hasUuidVersions;
    const tell = (line: number, text: string, reason: string) =>
      leftOut.add({ line, text: shown(text), reason });
    // MariaDB has had both since 11.7.
    this.#tables = new TableLines(tell, { hasVectors: hasUuidVersions });
  }

  /**
   * The line for this server; null: its statement is left out. Throws LoadFailed for a second
   * database.
   */
  altered(
    text: string,
    { line, isFirst }: { readonly line: number; readonly isFirst: boolean },
  ): string | null {
    const plain = text.trim();
    if (isFirst) {
      this.#isData = DATA.test(plain);
      const reason = this.#whyNot(plain, line) ?? this.#unset(plain);
      if (reason !== null) {
        this.#leftOut.add({ line, text: shown(plain), reason });
        return null;
      }
    }
    if (this.#isData && !isFirst) return text;
    if (isFirst && MODE.test(text) && SETS_MODE.test(plain)) return this.#withoutMode(text, line);
    const near = this.#own.without(text, { isFirst, isData: this.#isData });
    const here = this.#isData ? near : this.#translated(near, line);
    return this.#tables.altered(here, { line, isFirst });
  }

  /** The beginning of a long first line without the database's name; null: its statement is left out. */
  longAltered(head: string, line: number): string | null {
    const plain = head.trim();
    this.#isData = DATA.test(plain);
    const reason = this.#own.whyNot(plain, line);
    if (reason !== null) {
      this.#leftOut.add({ line, text: shown(plain), reason });
      return null;
    }
    return this.#own.without(head, { isFirst: true, isData: this.#isData });
  }

  #whyNot(text: string, line: number): string | null {
    const reason = this.#own.whyNot(text, line);
    if (reason !== null) return reason;
    if (isMessage(text)) return MESSAGE_REASON;
    return REFUSED.find(([pattern]) => pattern.test(text))?.[1] ?? null;
  }

  /** Settings without their earlier value, because the beginning of the dump is in another file. */
  #unset(text: string): string | null {
    if (this.#isData) return null;
    const name = RESTORED.exec(text)?.[1];
    if (name !== undefined && !this.#set.has(name.toLowerCase()))
      return `the line that sets @${name} is missing; the setting is not needed`;
    for (const [, made = ''] of text.matchAll(SETS_VARIABLE)) this.#set.add(made.toLowerCase());
    return null;
  }

  #translated(text: string, line: number): string {
    if (!ASKED.test(text)) return text;
    const without = (part: string) =>
      part
        .replaceAll(COLLATION, (whole) => this.#collation(whole, line))
        .replaceAll(CHARACTERS, (all, before: string, how?: string) =>
          this.#characters(all, { before, how, line }),
        )
        .replaceAll(NEWER, (whole, content: string) =>
          whole.endsWith('*/') ? this.#newer(whole, content, { text, line }) : whole,
        )
        .replace(ENGINE, (all, before: string, name: string) => this.#engine(all, { before, name, line }))
        .replace(OF_PARTITION, (all, before: string, name: string) =>
          this.#engine(all, { before, name, line }),
        );
    const pieces = text.replace(TYPE, '$1ENGINE').split(QUOTED);
    // HeidiSQL quotes the names of collations.
    const isName = (at: number) => at % 2 === 0 || NAMES_COLLATION.test(pieces[at - 1] ?? '');
    const parts = pieces.map((part, at) => (isName(at) ? without(part) : part));
    const tell = (call: string, reason: string) => this.#tell(line, call, reason);
    const whole = withoutNewFunctions(parts.join(''), { tell, keepsVersions: this.#hasUuidVersions });
    if (INDEX.test(whole)) return whole.replace(INDEX, '$1 IGNORED');
    if (!GENERATED.test(whole)) return whole;
    this.#tell(line, 'NOT NULL', 'generated columns cannot be NOT NULL on this server');
    return whole.replace(GENERATED, '$1');
  }

  #withoutMode(text: string, line: number): string {
    this.#tell(line, 'TIME_TRUNCATE_FRACTIONAL', 'the server has no such mode, and truncates without it');
    return text.replace(MODE, '');
  }

  #collation(name: string, line: number): string {
    if (this.#collations.has(name)) return name;
    const near = nearest(name).find((other) => this.#collations.has(other));
    if (near === undefined) return name;
    this.#tell(line, name, `the server does not have this collation; the nearest is ${near}`);
    return near;
  }

  /** Without this, a dump that does not set sql_mode is refused: it may not be substituted. */
  #engine(all: string, { before, name, line }: { before: string; name: string; line: number }): string {
    const enforced = this.#enforcedEngine;
    if (enforced === null || enforced.toLowerCase() === name.toLowerCase()) return all;
    this.#tell(line, `ENGINE=${name}`, `all tables on this server use ${enforced}`);
    return before + enforced;
  }

  #characters(
    all: string,
    {
      before,
      how,
      line,
    }: { readonly before: string; readonly how: string | undefined; readonly line: number },
  ): string {
    if (this.#collations.has(GB18030)) return all;
    this.#tell(line, 'gb18030', 'the server does not have this character set; the text is utf8mb4');
    const order = how === 'bin' ? 'utf8mb4_bin' : 'utf8mb4_unicode_520_ci';
    return before + (how === undefined ? 'utf8mb4' : order);
  }

  /** A part that only MySQL 8 and newer executes. */
  #newer(whole: string, content: string, at: { readonly text: string; readonly line: number }): string {
    if (content === 'INVISIBLE') return this.#invisible(at);
    // Constraints that are not enforced are left out with the table's lines.
    const isNothing = /^(?:SET |DEFAULT ENCRYPTION|ENCRYPTION|NOT ENFORCED)/.test(content);
    if (!isNothing)
      this.#leftOut.add({ line: at.line, text: whole, reason: 'only MySQL 8 and newer support it' });
    return whole;
  }

  #invisible({ text, line }: { readonly text: string; readonly line: number }): string {
    if (/^\s*(?:(?:UNIQUE|FULLTEXT|SPATIAL) )?KEY /.test(text)) return 'IGNORED';
    if (!/ NOT NULL\b/.test(text) || / (?:DEFAULT|AUTO_INCREMENT|GENERATED)\b/.test(text)) return 'INVISIBLE';
    this.#tell(line, 'INVISIBLE', 'columns that must have a value are visible on this server');
    return '';
  }

  #tell(line: number, text: string, reason: string): void {
    if (this.#told.has(text)) return;
    this.#told.add(text);
    this.#leftOut.add({ line, text, reason });
  }
}

/** Decodes text with one character per byte. */
const shown = (bytes: string) => Buffer.from(bytes, 'latin1').toString();

/**
 * Other collations with a similar order, the nearest first: MySQL's ones of Unicode 9 do not pad
 * with spaces.
 */
function nearest(name: string): string[] {
  const [, set = '', rest = '', , , how = ''] = new RegExp(COLLATION.source).exec(name) ?? [];
  if (how === 'bin') return [`${set}_nopad_bin`, `${set}_bin`];
  const language = LANGUAGES[rest.replace(/^_/, '')];
  const names = (part: string) => [
    `${set}_uca1400${part}_nopad_${how}`,
    `${set}_uca1400${part}_${how}`,
    ...(how === 'ai_ci' && part !== '' ? [`${set}${part}_ci`] : []),
  ];
  const all = language === undefined ? names('') : [...names(`_${language}`), ...names('')];
  return [...all, `${set}_unicode_520_nopad_ci`, `${set}_unicode_520_ci`, `${set}_unicode_ci`];
}
