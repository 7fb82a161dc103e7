/** Search params of a folder's address: a link restores the view. */
export interface FilesSearch {
  /** The folder: ends with `/`; absent: the top. */
  readonly prefix?: string;
  /** Names that have this. */
  readonly find?: string;
  /** Absent: by name. */
  readonly sort?: 'size' | 'created_at';
  /** Absent: ascending. */
  readonly order?: 'desc';
  /** Only deleted files. */
  readonly deleted?: true;
  /** Id of the object whose details are open. */
  readonly object?: string;
}

const TAKEN: { readonly [M in keyof Required<FilesSearch>]: (value: unknown) => boolean } = {
  prefix: isText,
  find: isText,
  sort: (value) => value === 'size' || value === 'created_at',
  order: (value) => value === 'desc',
  deleted: (value) => value === true,
  object: isText,
};

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

/** Known params with valid values; the rest is dropped. */
export function readSearch(search: Record<string, unknown>): FilesSearch {
  return Object.fromEntries(
    Object.entries(TAKEN).flatMap(([name, isTaken]) => {
      const value = search[name];
      return isTaken(value) ? [[name, value]] : [];
    }),
  );
}

/** Another folder, looked at in the same way. */
export function inFolder(search: FilesSearch, prefix: string): FilesSearch {
  const { find: _find, object: _object, prefix: _prefix, ...view } = search;
  return prefix === '' ? view : { ...view, prefix };
}
