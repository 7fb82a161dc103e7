/** The authorizer of a tenant's SQL: SQLite calls it for every statement that it compiles. */
import { constants } from 'node:sqlite';

const {
  SQLITE_OK,
  SQLITE_DENY,
  SQLITE_IGNORE,
  SQLITE_PRAGMA,
  SQLITE_FUNCTION,
  SQLITE_CREATE_VTABLE,
  SQLITE_TRANSACTION,
  SQLITE_SAVEPOINT,
} = constants;

/** Allowed actions. ATTACH, DETACH and VACUUM, with or without INTO, are denied. */
const ALLOWED: ReadonlySet<number> = new Set([
  constants.SQLITE_CREATE_INDEX,
  constants.SQLITE_CREATE_TABLE,
  constants.SQLITE_CREATE_TEMP_INDEX,
  constants.SQLITE_CREATE_TEMP_TABLE,
  constants.SQLITE_CREATE_TEMP_TRIGGER,
  constants.SQLITE_CREATE_TEMP_VIEW,
  constants.SQLITE_CREATE_TRIGGER,
  constants.SQLITE_CREATE_VIEW,
  constants.SQLITE_DELETE,
  constants.SQLITE_DROP_INDEX,
  constants.SQLITE_DROP_TABLE,
  constants.SQLITE_DROP_TEMP_INDEX,
  constants.SQLITE_DROP_TEMP_TABLE,
  constants.SQLITE_DROP_TEMP_TRIGGER,
  constants.SQLITE_DROP_TEMP_VIEW,
  constants.SQLITE_DROP_TRIGGER,
  constants.SQLITE_DROP_VIEW,
  constants.SQLITE_DROP_VTABLE,
  constants.SQLITE_INSERT,
  constants.SQLITE_READ,
  constants.SQLITE_SELECT,
  constants.SQLITE_TRANSACTION,
  constants.SQLITE_UPDATE,
  constants.SQLITE_ALTER_TABLE,
  constants.SQLITE_REINDEX,
  constants.SQLITE_ANALYZE,
  constants.SQLITE_SAVEPOINT,
  constants.SQLITE_RECURSIVE,
]);

const FORBIDDEN_FUNCTIONS: ReadonlySet<string> = new Set(['load_extension', 'fts3_tokenizer']);
/** Modules of virtual tables. */
export const VIRTUAL_TABLES: ReadonlySet<string> = new Set(
  'fts3 fts4 fts5 fts5vocab rtree rtree_i32 geopoly'.split(' '),
);

/** May be read and set: they read, or affect only the tenant's own session and data. */
const FREE_PRAGMAS: ReadonlySet<string> = new Set(
  `analysis_limit application_id automatic_index case_sensitive_like collation_list compile_options
  data_version defer_foreign_keys foreign_key_check foreign_key_list foreign_keys freelist_count
  function_list ignore_check_constraints incremental_vacuum index_info index_list index_xinfo
  integrity_check legacy_alter_table module_list optimize page_count pragma_list query_only quick_check
  read_uncommitted recursive_triggers reverse_unordered_selects shrink_memory table_info table_list
  table_xinfo user_version wal_checkpoint`.split(/\s+/),
);
/** May be read, not set. */
const READABLE_PRAGMAS: ReadonlySet<string> = new Set(
  `auto_vacuum busy_timeout cache_size cache_spill cell_size_check encoding journal_mode journal_size_limit
  locking_mode max_page_count mmap_size page_size schema_version secure_delete synchronous temp_store threads
  trusted_schema wal_autocheckpoint`.split(/\s+/),
);
/** Set by many programs when they connect; ignored, because an error would stop them. */
const IGNORED_PRAGMAS: ReadonlySet<string> = new Set(
  `busy_timeout cache_size cache_spill journal_size_limit mmap_size synchronous temp_store threads
  wal_autocheckpoint`.split(/\s+/),
);

/** `single`: every statement is independent, and connection settings cannot be changed. */
export type Sessions = 'own' | 'single';

type Authorizer = (action: number, first: string | null, second: string | null) => number;

/** For setAuthorizer(). */
export function authorizer(sessions: Sessions): Authorizer {
  return (action, first, second) => {
    switch (action) {
      case SQLITE_PRAGMA:
        return pragma((first ?? '').toLowerCase(), second, sessions);
      case SQLITE_FUNCTION:
        return FORBIDDEN_FUNCTIONS.has((second ?? '').toLowerCase()) ? SQLITE_DENY : SQLITE_OK;
      case SQLITE_CREATE_VTABLE:
        return VIRTUAL_TABLES.has((second ?? '').toLowerCase()) ? SQLITE_OK : SQLITE_DENY;
      case SQLITE_TRANSACTION:
      case SQLITE_SAVEPOINT:
        return sessions === 'own' ? SQLITE_OK : SQLITE_DENY;
      default:
        return ALLOWED.has(action) ? SQLITE_OK : SQLITE_DENY;
    }
  };
}

/**
 * For a file that is being made of SQL text: it is checked afterwards like one that was uploaded, so the text
 * may write all parts of it. Settings of the connection are ignored.
 */
export const loadAuthorizer: Authorizer = (action, first, second) => {
  if (action !== SQLITE_PRAGMA) return authorizer('own')(action, first, second);
  const name = (first ?? '').toLowerCase();
  // R*Tree asks for the size of a page.
  const isRead = second === null && READABLE_PRAGMAS.has(name);
  return isRead || FREE_PRAGMAS.has(name) || name === 'writable_schema' ? SQLITE_OK : SQLITE_IGNORE;
};

function pragma(name: string, value: string | null, sessions: Sessions): number {
  if (sessions === 'single' && name === 'query_only' && value !== null) return SQLITE_DENY;
  if (FREE_PRAGMAS.has(name)) return SQLITE_OK;
  if (value === null) return READABLE_PRAGMAS.has(name) ? SQLITE_OK : SQLITE_DENY;
  if (name === 'journal_mode' && value.toLowerCase() === 'wal') return SQLITE_OK;
  return IGNORED_PRAGMAS.has(name) ? SQLITE_IGNORE : SQLITE_DENY;
}
