/** The view of a list, filtered and sorted; part of the page's address. */

export interface ListView {
  /** Rows with all of these words. */
  readonly find?: string;
  /** Id of the sort column; default: the order of the API. */
  readonly column?: string;
  /** Largest first. */
  readonly down?: true;
  /** Ids of the columns that are not shown, separated by commas. */
  readonly hide?: string;
}

/** The members of an address that a list reads; others are dropped. */
export function listSearch({ find, column, down, hide }: Record<string, unknown>): ListView {
  return {
    ...(typeof find === 'string' && find !== '' ? { find } : {}),
    ...(typeof column === 'string' && column !== '' ? { column } : {}),
    ...(down === true ? { down } : {}),
    ...(typeof hide === 'string' && hide !== '' ? { hide } : {}),
  };
}

/** The ids of the columns that the view does not show. */
export const hiddenIn = ({ hide = '' }: ListView): readonly string[] => hide.split(',').filter(Boolean);

/** The view after a click on a column heading: ascending, descending, then the cloud's order. */
export function sortedBy({ column, down, ...view }: ListView, id: string): ListView {
  if (column !== id) return { ...view, column: id };
  return down ? view : { ...view, column: id, down: true };
}
