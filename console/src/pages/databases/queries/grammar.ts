/** Query languages of databases, from the traits of their engine. */

type Dialect = 'standard' | 'sqlite' | 'postgresql' | 'mysql';
/** A dialect of SQL, or JSON commands for documents. */
export type Grammar = Dialect | 'documents';

interface Traits {
  readonly language: 'sql' | 'documents';
  readonly dialect: Dialect | null;
}

/** The grammar for an engine of the cloud. */
export function grammarOf({ traits }: { readonly traits: Traits }): Grammar {
  return traits.language === 'documents' ? 'documents' : (traits.dialect ?? 'standard');
}
