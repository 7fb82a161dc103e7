/**
 * Statements of dumps that this server or tenant cannot have: settings of newer versions, owners
 * and rights of missing roles, objects of the whole server, or operations for administrators only.
 * They are those of pg_dump and pg_dumpall 9 to 18, and of pg_restore.
 */
import { withCollations } from './absent-collations.ts';
import { AbsentSchemas } from './absent-schemas.ts';
import { AbsentThings, neededExtension, ofAdministrators } from './absent-things.ts';
import { olderForm } from './newer-syntax.ts';
import type { ServerFacts } from './server-facts-store.ts';
import { ID, namesIn, pattern, plainName, remember } from './sql-names.ts';

export interface Refused {
  readonly reason: string;
  /** Replacement SQL; missing: none. */
  readonly instead?: string;
}

const SETTING = pattern('^(?:SET|RESET) (?:(?:SESSION|LOCAL) )?("?[A-Za-z_][\\w.]*"?)([\\s\\S]*?);?$');
/** Words after SET that are not settings. */
const NO_SETTINGS = new Set(
  'all characteristics constraints names schema seed session time transaction xml'.split(' '),
);
const AS_ROLE = pattern(
  '^(?:SET|RESET) (?:(?:SESSION|LOCAL) )?(?:ROLE|AUTHORIZATION|SESSION AUTHORIZATION)\\b(?! DEFAULT)',
);
const SET_CONFIG = /^SELECT\s+(?:pg_catalog\.)?set_config\s*\(\s*'([^']+)'/i;
const UNLINK = /^SELECT\s+(?:pg_catalog\.)?lo_unlink\s*\(/i;
const STATISTICS =
  /^SELECT\s+(?:\*\s+FROM\s+)?pg_catalog\.(pg_restore_\w+_stats|pg_replication_origin_\w+|binary_upgrade\w*)\s*\(/i;
const OWNER = pattern('^ALTER [\\s\\S]+ OWNER TO (ID)\\s*;?$');
const PUBLIC_SCHEMA = pattern('^ALTER SCHEMA (?:public|"public") OWNER ');
const RIGHTS = pattern(
  '^(?:GRANT|REVOKE)\\s[\\s\\S]+? (?:TO|FROM) (IDS)(?: WITH [\\w\\s,]+?)?(?: GRANTED BY (ID))?(?: CASCADE| RESTRICT)?\\s*;?$',
);
const RIGHTS_ON = pattern('^(?:GRANT|REVOKE)\\s[\\s\\S]+? ON (?:(ID)\\s)?');
const FAR_RIGHTS = pattern(
  ' ON (?:(?:LANGUAGE|FOREIGN|TABLESPACE|PARAMETER|DATABASE) |[\\s\\S]*?\\bpg_catalog\\.)',
);
const DEFAULT_RIGHTS = pattern('^ALTER DEFAULT PRIVILEGES(?: FOR (?:ROLE|USER) (IDS))?\\s[\\s\\S]*');
const DEFAULT_TO = pattern(' (?:TO|FROM) (IDS)(?: WITH GRANT OPTION)?(?: CASCADE| RESTRICT)?\\s*;?$');
const EXTENSION = pattern('^(CREATE|ALTER|DROP|COMMENT ON) EXTENSION (IF (?:NOT )?EXISTS )?(ID)');
const SCHEMA = pattern(
  '^CREATE SCHEMA (IF NOT EXISTS )?(?!AUTHORIZATION)(ID)(?: AUTHORIZATION (ID))?\\s*;?$',
);
const POLICY = pattern(
  '^(?:CREATE|ALTER) POLICY ID ON [\\s\\S]+? TO (IDS)(?: (?:USING|WITH)[\\s\\S]*)?\\s*;?$',
);
const ALL_TRIGGERS = pattern('^(ALTER TABLE [\\s\\S]+ (?:DISABLE|ENABLE) TRIGGER) ALL\\s*;?$');
const TABLESPACE = pattern(
  '^(CREATE (?:UNIQUE )?(?:INDEX|TABLE|UNLOGGED TABLE|MATERIALIZED VIEW)\\s[\\s\\S]*\\)) TABLESPACE (ID)\\s*;?$',
);
const INDEX_SPACE = pattern(
  '^(ALTER TABLE [\\s\\S]+ ADD [\\s\\S]+) USING INDEX TABLESPACE (?!pg_default\\b)(ID)\\s*;?$',
);
const MOVED = pattern(
  '^ALTER (?:TABLE|INDEX|MATERIALIZED VIEW)\\s[\\s\\S]+ SET (TABLESPACE|ACCESS METHOD) (ID)\\s*;?$',
);
const LANGUAGE = pattern(
  '^(?:CREATE(?: OR REPLACE)?|ALTER|DROP|COMMENT ON)(?: TRUSTED)?(?: PROCEDURAL)? LANGUAGE ',
);
/** Up to the body. */
const ROUTINE_HEAD = pattern(
  '^CREATE(?: OR REPLACE)? (?:FUNCTION|PROCEDURE) (?:(?! (?:AS|BEGIN) )[\\s\\S])*',
);
const ROUTINE_SETTING =
  /\sSET\s+("?[A-Za-z_][\w.]*"?)\s*(?:=|\sTO\s)\s*(?:'(?:[^']|'')*'|[\w.-]+)(?:\s*,\s*(?:'(?:[^']|'')*'|[\w.-]+))*/gi;
const WITH_OIDS = pattern(
  "^(CREATE (?:UNLOGGED )?TABLE\\s[\\s\\S]*\\)) WITH (?:OIDS|\\(\\s*OIDS(?:\\s*=\\s*'?true'?)?\\s*\\))\\s*;?$",
);
const METHOD = pattern('^CREATE(?: UNIQUE)? INDEX [\\s\\S]*? USING (ID) \\(');
const OF_FILES =
  /^CREATE\s+TEXT\s+SEARCH\s+DICTIONARY\b[\s\S]*\b(?:dictfile|afffile|synonyms|dictfile|thesaurus)\s*=/i;
const DROPPED = pattern('^(?:DROP |ALTER [\\s\\S]*\\sDROP )');
const NO_ROLE = new Set(['public', 'current_user', 'current_role', 'session_user']);

const NOTHING_TO_DROP = 'there is nothing to drop: the load starts with an empty database';
const NO_OIDS = 'tables have no hidden OIDs';
const TRUE = /^(?:on|true|yes|1)$/;
const NO_FOREIGN = 'foreign servers are not available here';
const MADE_ROLE = new RegExp(`CREATE\\s+ROLE\\s+(${ID})`, 'gi');
/** Objects that belong to the server or its administrators, by the words after CREATE, ALTER etc. */
const FAR: readonly (readonly [RegExp, string])[] = (
  [
    ['PUBLICATION|SUBSCRIPTION', 'logical replication is not available here'],
    ['EVENT TRIGGER', 'only server administrators can create event triggers'],
    ['ROLE|USER(?! MAPPING)|GROUP', 'roles are server-wide, and a load changes only this database'],
    ['DATABASE|SYSTEM|TABLESPACE', 'it concerns the server, and a load changes only this database'],
    [
      'ACCESS METHOD|TRANSFORM|OPERATOR CLASS|OPERATOR FAMILY|TEXT SEARCH (?:PARSER|TEMPLATE)',
      'only server administrators can create these',
    ],
    ['FOREIGN DATA WRAPPER|SERVER|USER MAPPING|FOREIGN TABLE', NO_FOREIGN],
  ] as const
).map(([words, reason]) => [
  pattern(`^(?:(?:CREATE|ALTER|DROP)(?: OR REPLACE)?|COMMENT ON) (?:${words})\\b`),
  reason,
]);
const LABEL = /^SECURITY\s+LABEL\b/i;
const FOREIGN_SCHEMA = /^IMPORT\s+FOREIGN\b/i;

/** First words of statements that may be refused. */
const ASKED = new Set(
  'alter checkpoint comment create delete do drop grant import load refresh reset revoke security select set update'.split(
    ' ',
  ),
);
/** Statements with rows, which are left out with the extension of their table. */
const ROWS = new Set(['copy', 'insert']);
/** Maximum inspected length of statements other than CREATE. */
const MOST_HEAD = 4096;
/** The matching time grows quadratically with whitespace. */
const LONG_SPACE = /\s{100}/;

export class RefusedStatements {
  readonly #facts: ServerFacts;
  readonly #roles: Set<string>;
  /** Extensions that the dump creates. */
  readonly #created = new Set<string>();
  readonly #absentThings = new AbsentThings();
  /** null: the tables exist, and only their rows are loaded. */
  readonly #absentSchemas: AbsentSchemas | null;
  #hasBegun: boolean;

  /** `startsEmpty`: the dump is for a database without tables. */
  constructor(facts: ServerFacts, { startsEmpty = true }: { readonly startsEmpty?: boolean } = {}) {
    this.#facts = facts;
    this.#hasBegun = !startsEmpty;
    this.#absentSchemas = startsEmpty ? new AbsentSchemas(facts) : null;
    this.#roles = new Set(facts.roles);
  }

  /** Whether statements with this first word may be refused. */
  asksAbout(word: string): boolean {
    return ASKED.has(word) || (ROWS.has(word) && this.#absentSchemas?.lacksExtension === true);
  }

  /** Why the statement cannot run here; null: it can, as far as known. */
  of(statement: string): Refused | null {
    const text = statement.trim();
    const word = /^\w+/.exec(text)?.[0].toLowerCase() ?? '';
    if (LONG_SPACE.test(text)) return null;
    const isCut = text.length > MOST_HEAD && word !== 'create';
    if (isCut && (word === 'alter' || word === 'grant' || word === 'revoke')) return null;
    const headOf = (now: string) => (isCut ? now.slice(0, MOST_HEAD) : now);
    const refused = through(text, [
      (now) => this.#ofWord(word, headOf(now)),
      (now) => this.#absentThings.neededBy(headOf(now)),
      (now) => this.#absentSchemas?.ofExtension(headOf(now)) ?? null,
      (now) => this.#absentSchemas?.of(now) ?? null,
      (now) => withCollations(now, this.#facts),
      (now) => olderForm(now, this.#facts),
    ]);
    if (refused !== null) this.#absentThings.note(text, refused.instead);
    if (refused !== null && refused.instead === undefined) this.#absentSchemas?.noteLeftOut(text);
    if (refused === null || refused.instead !== undefined) this.#noteRun(word, text);
    return refused;
  }

  #noteRun(word: string, text: string): void {
    this.#absentThings.noteMade(text);
    this.#absentSchemas?.noteMade(text);
    // Dumps drop objects before creating them, but a load starts with an empty database.
    if (word === 'create') this.#hasBegun = true;
  }

  #ofWord(word: string, text: string): Refused | null {
    switch (word) {
      case 'set':
      case 'reset':
        return this.#setting(text);
      case 'select':
        return this.#called(text);
      case 'grant':
      case 'revoke':
        return this.#rights(text);
      case 'do':
        for (const [, name = ''] of text.matchAll(MADE_ROLE)) remember(this.#roles, plainName(name));
        return null;
      case 'load':
      case 'checkpoint':
        return because('it concerns the server, and a load changes only this database');
      case 'security':
        return LABEL.test(text) ? because('no security label provider is installed') : null;
      case 'import':
        return FOREIGN_SCHEMA.test(text) ? because(NO_FOREIGN) : null;
      case 'create':
        return (
          this.#schema(text) ??
          this.#policy(text) ??
          this.#stored(text) ??
          this.#far(text) ??
          this.#method(text) ??
          this.#routineSettings(text)
        );
      case 'update':
      case 'delete':
        return ofAdministrators(text, this.#things);
      default:
        return this.#changed(text) ?? this.#far(text);
    }
  }

  #changed(text: string): Refused | null {
    if (!this.#hasBegun && DROPPED.test(text)) return because(NOTHING_TO_DROP);
    const [, table] = ALL_TRIGGERS.exec(text) ?? [];
    if (table !== undefined)
      return { instead: `${table} USER;`, reason: 'foreign key triggers cannot be disabled here' };
    const [, constraint, space] = INDEX_SPACE.exec(text) ?? [];
    if (space !== undefined) return { ...noTablespace(space), instead: `${constraint};` };
    return this.#owner(text) ?? this.#defaultRights(text) ?? this.#policy(text) ?? this.#moved(text);
  }

  #far(text: string): Refused | null {
    if (LANGUAGE.test(text)) return because('languages are provided by extensions here');
    const reason = FAR.find(([what]) => what.test(text))?.[1];
    if (reason !== undefined) return because(reason);
    return ofAdministrators(text, this.#things) ?? this.#extension(text);
  }

  get #things() {
    const { languages, types } = this.#facts;
    return { languages: languages.union(this.#created), types };
  }

  #setting(text: string): Refused | null {
    if (AS_ROLE.test(text)) return because('loaded objects belong to the user of this database');
    const [, quoted, rest = ''] = SETTING.exec(text) ?? [];
    if (quoted === undefined) return null;
    const name = plainName(quoted);
    if (NO_SETTINGS.has(name)) return null;
    return this.#settable(name) ?? this.#value(name, rest.replace(/^\s*(?:=|TO\b)\s*/i, '').trim());
  }

  /** A routine without the settings that it cannot have. */
  #routineSettings(text: string): Refused | null {
    const head = ROUTINE_HEAD.exec(text)?.[0];
    if (head === undefined) return null;
    let reason: string | undefined;
    const kept = head.replaceAll(ROUTINE_SETTING, (clause, name: string) => {
      const refused = this.#settable(plainName(name));
      reason ??= refused?.reason;
      return refused === null ? clause : '';
    });
    return reason === undefined ? null : { reason, instead: kept + text.slice(head.length) };
  }

  #settable(name: string): Refused | null {
    const { settings, version } = this.#facts;
    const isFree = settings.get(name.toLowerCase());
    if (isFree === true || (isFree === undefined && name.includes('.'))) return null;
    if (isFree === false) return because(`only server administrators can set ${name}`);
    return because(`PostgreSQL ${version} has no setting ${name}`);
  }

  #value(name: string, given: string): Refused | null {
    const value = plainName(given.replace(/^'([\s\S]*)'$/, '$1'));
    if (value === '' || value === 'default') return null;
    if (name === 'default_with_oids' && TRUE.test(value)) return because(NO_OIDS);
    if (name === 'default_tablespace' && value !== 'pg_default') return noTablespace(value);
    if (name === 'default_table_access_method' && !this.#facts.accessMethods.has(value))
      return because(`there is no table access method ${value} here`);
    return null;
  }

  #called(text: string): Refused | null {
    const setting = SET_CONFIG.exec(text)?.[1];
    if (setting !== undefined) return this.#settable(setting);
    if (!this.#hasBegun && UNLINK.test(text)) return because(NOTHING_TO_DROP);
    const name = STATISTICS.exec(text)?.[1];
    if (name === undefined) return null;
    if (name.startsWith('pg_restore') && this.#facts.functions.has('pg_restore_relation_stats')) return null;
    return because(`PostgreSQL ${this.#facts.version} has no ${name} for users; statistics are rebuilt`);
  }

  #owner(text: string): Refused | null {
    if (PUBLIC_SCHEMA.test(text)) return because('the schema public belongs to the user of this database');
    const name = OWNER.exec(text)?.[1];
    if (name === undefined || NO_ROLE.has(name.toLowerCase()) || this.#facts.owners.has(plainName(name)))
      return null;
    return because(`loaded objects belong to the user of this database, not to ${name}`);
  }

  #absent(list: string): string | undefined {
    const isAbsent = (name: string) => !NO_ROLE.has(name.toLowerCase()) && !this.#roles.has(plainName(name));
    return namesIn(list).find(isAbsent);
  }

  #rights(text: string): Refused | null {
    if (!RIGHTS_ON.test(text)) return because('role memberships are server-wide');
    if (FAR_RIGHTS.test(text)) return because('only server administrators can grant privileges on this');
    const [, roles = '', by = ''] = RIGHTS.exec(text) ?? [];
    return noRole(this.#absent(roles) ?? this.#absent(by));
  }

  #defaultRights(text: string): Refused | null {
    const found = DEFAULT_RIGHTS.exec(text);
    if (found === null) return null;
    const { owners } = this.#facts;
    const other = namesIn(found[1] ?? '').find((name) => !owners.has(plainName(name)));
    return noRole(other ?? this.#absent(DEFAULT_TO.exec(text)?.[1] ?? ''));
  }

  #extension(text: string): Refused | null {
    const needed = neededExtension(text);
    if (needed !== undefined && !this.#created.has(needed) && !this.#facts.installed.has(needed))
      return because(`the extension ${needed} is not available here`);
    const [, verb = '', condition, quoted] = EXTENSION.exec(text) ?? [];
    if (quoted === undefined) return null;
    const name = plainName(quoted);
    const { installed, extensions } = this.#facts;
    if (!verb.toUpperCase().startsWith('CREATE')) {
      return this.#created.has(name) ? null : because(`you cannot change the extension ${name}`);
    }
    if (installed.has(name)) return condition === undefined ? because(`${name} is already installed`) : null;
    if (!extensions.has(name)) return because(`the extension ${name} is not available here`);
    remember(this.#created, name);
    return null;
  }

  #schema(text: string): Refused | null {
    const [, condition, name, owner] = SCHEMA.exec(text) ?? [];
    if (name === undefined) return null;
    if (plainName(name) === 'public') {
      return condition === undefined ? because('the schema public already exists') : null;
    }
    if (owner === undefined || this.#facts.owners.has(plainName(owner))) return null;
    return {
      instead: `CREATE SCHEMA ${condition ?? ''}${name};`,
      reason: `it belongs to you, not to ${owner}`,
    };
  }

  #policy(text: string): Refused | null {
    return noRole(this.#absent(POLICY.exec(text)?.[1] ?? ''));
  }

  #stored(text: string): Refused | null {
    const [, made, space] = TABLESPACE.exec(text) ?? [];
    const isAway = space !== undefined && plainName(space) !== 'pg_default';
    const table = WITH_OIDS.exec(made === undefined ? text : `${made};`)?.[1];
    const instead = `${table ?? made};`;
    if (table === undefined) return isAway ? { ...noTablespace(space), instead } : null;
    return { reason: isAway ? `${NO_OIDS}; ${noTablespace(space).reason}` : NO_OIDS, instead };
  }

  #method(text: string): Refused | null {
    if (OF_FILES.test(text)) return because('dictionaries in files of the server are not available here');
    const name = METHOD.exec(text)?.[1];
    if (name === undefined || this.#facts.accessMethods.has(plainName(name))) return null;
    return because(`there is no index access method ${name} here`);
  }

  #moved(text: string): Refused | null {
    const [, what, name] = MOVED.exec(text) ?? [];
    if (what === undefined || name === undefined) return null;
    if (what.toUpperCase() === 'TABLESPACE')
      return plainName(name) === 'pg_default' ? null : noTablespace(name);
    if (this.#facts.accessMethods.has(plainName(name))) return null;
    return because(`there is no table access method ${name} here`);
  }
}

const because = (reason: string): Refused => ({ reason });
const noTablespace = (name: string) =>
  because(`there is no tablespace ${name} here; the default one is used`);
const noRole = (name: string | undefined) =>
  name === undefined ? null : because(`there is no role ${name} on this server`);

/** The statement after all steps; null: it can run unchanged. */
function through(text: string, steps: readonly ((now: string) => Refused | null)[]): Refused | null {
  const reasons: string[] = [];
  let instead = text;
  for (const step of steps) {
    const refused = step(instead);
    if (refused === null) continue;
    reasons.push(refused.reason);
    if (refused.instead === undefined) return { reason: reasons.join('; ') };
    instead = refused.instead;
  }
  return reasons.length === 0 ? null : { reason: reasons.join('; '), instead };
}
