/**
 * An engine's description of itself. Rules, the client and the console check traits, never the name
 * of an engine: what differs by engine is in the engine's own folder.
 */
import type { EngineName } from './engine.ts';
import type { PlanLanguage } from './querying/plan-language.ts';
import type { RowLanguage } from './rows/row-language.ts';

/** Common SQL grammars, named after a well-known system; `standard`: only the standard. */
export const SQL_DIALECTS = ['standard', 'sqlite', 'postgresql', 'mysql'] as const;
export type SqlDialect = (typeof SQL_DIALECTS)[number];

export const LANGUAGES = ['sql', 'documents'] as const;
export const TRANSPORTS = ['tcp', 'http'] as const;

export interface EngineTraits {
  /** `documents`: queries are commands as JSON, and tables are collections. */
  readonly language: (typeof LANGUAGES)[number];
  /** null: the language is not SQL. */
  readonly dialect: SqlDialect | null;
  /** How drivers connect: to a port of the engine, or over HTTP to the data origin. */
  readonly transport: (typeof TRANSPORTS)[number];
  /** Whether its servers write a log of each database. */
  readonly hasLog: boolean;
  /** Whether drivers may use TLS where it is not required. */
  readonly offersTls: boolean;
  /** Whether programs can create test databases beside a database. */
  readonly hasTestDatabases: boolean;
  /** Whether the databases of an account share a server of the account's own, if Cloudlet runs it. */
  readonly hasAccountServer: boolean;
}

/** Terminal programs for the engine. */
export interface EngineClient {
  /** The preferred program first. */
  readonly programs: readonly string[];
  /** Debian package of the program. */
  readonly package: string;
}

export interface EngineDescription {
  readonly name: EngineName;
  /** Name for display: `PostgreSQL`. */
  readonly title: string;
  /** A sentence on suitable uses. */
  readonly summary: string;
  /** The usual port of its drivers, and its port in the private networks of accounts. */
  readonly port: number;
  readonly traits: EngineTraits;
  /** null: no client. */
  readonly client: EngineClient | null;
  /** Codes of its errors (QueryFailed.engineCode) that mean damaged data. */
  readonly damageCodes: readonly string[];
  /** How rows of its tables are read and changed; missing: only by the tenant's statements. */
  readonly rows?: RowLanguage;
  /** How it explains a statement; missing: not supported. */
  readonly plans?: PlanLanguage;
  /** How a dump differs from the previous one: in place, or by inserted bytes. */
  readonly dumpChanges: 'in_place' | 'by_insertion';
  /** The first bytes of dumps that its programs write and no other engine loads; missing: unknown. */
  readonly dumpBegins?: RegExp;
  /** Sample code that connects. */
  snippets(target: SnippetTarget): Snippets;
  /** Settings of web frameworks; empty if none supports the engine. */
  frameworks(target: SnippetTarget): FrameworkSnippet[];
}

/** The database that sample code is for. */
export interface SnippetTarget {
  /** Includes the password. */
  readonly uri: string;
  readonly password: string;
  readonly tls: boolean;
  /** Whether users get a CA certificate, which they save as CA_FILE. */
  readonly hasCa: boolean;
}

export const CA_FILE = 'ca.pem';

/** Keyed by language; `cli`: a shell command. */
export type Snippets = Record<'cli' | 'node' | 'python' | 'go' | 'php', string>;

export interface FrameworkSnippet {
  /** `Django` */
  readonly framework: string;
  /** The framework's file that contains the code. */
  readonly file: string;
  readonly code: string;
}
