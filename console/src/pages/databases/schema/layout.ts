/** Positions of tables in a diagram: referenced tables are left of the tables that refer to them. */

/** The members of the API's DatabaseTable that are drawn. */
export interface SchemaTable {
  readonly name: string;
  readonly schema: string | null;
  readonly columns: readonly {
    readonly name: string;
    readonly type: string | null;
    readonly primary_key: boolean;
  }[];
  readonly foreign_keys: readonly {
    readonly columns: readonly string[];
    readonly references: { readonly table: string; readonly columns: readonly string[] };
  }[];
}

export const BOX_PX = 230;
export const HEAD_PX = 28;
export const LINE_PX = 20;
/** Columns of a table that are shown; keys first. */
const MOST_COLUMNS = 12;
const GAP_PX = 24;
const BETWEEN_PX = 90;
/** A level of many tables is several columns of about this height. */
const COLUMN_PX = 1400;

export interface Line {
  readonly name: string;
  readonly type: string;
  readonly key: 'primary' | 'foreign' | null;
}

export interface Box {
  readonly table: SchemaTable;
  readonly lines: readonly Line[];
  /** Columns that are not shown. */
  readonly more: number;
  readonly x: number;
  readonly y: number;
  readonly height: number;
}

export interface Reference {
  readonly from: Box;
  readonly to: Box;
  readonly columns: readonly string[];
  readonly others: readonly string[];
}

export interface Diagram {
  readonly boxes: readonly Box[];
  readonly references: readonly Reference[];
  readonly width: number;
  readonly height: number;
}

export function diagramOf(tables: readonly SchemaTable[]): Diagram {
  const links = tables.flatMap((table) =>
    table.foreign_keys.map((key) => ({ table, key, target: targetOf(table, key.references.table, tables) })),
  );
  const levels = levelsOf(tables, links);
  const linked = new Set(links.flatMap(({ table, target }) => (target === undefined ? [] : [table, target])));
  const byLevel = new Map<number, SchemaTable[]>();
  for (const table of tables) {
    // Tables without keys come last.
    const level = linked.has(table) ? (levels.get(table) ?? 0) : Number.POSITIVE_INFINITY;
    byLevel.set(level, [...(byLevel.get(level) ?? []), table]);
  }
  const boxes: Box[] = [];
  let [x, y, height] = [0, 0, 0];
  for (const [, level] of [...byLevel].sort(([one], [other]) => one - other)) {
    for (const table of level) {
      const box = boxOf(table, x, y);
      if (y > 0 && y + box.height > COLUMN_PX) [x, y] = [x + BOX_PX + BETWEEN_PX, 0];
      boxes.push({ ...box, x, y });
      y += box.height + GAP_PX;
      height = Math.max(height, y);
    }
    [x, y] = [x + BOX_PX + BETWEEN_PX, 0];
  }
  const found = new Map(boxes.map((box) => [box.table, box]));
  const references = links.flatMap(({ table, key, target }) => {
    const [from, to] = [found.get(table), target && found.get(target)];
    if (from === undefined || to === undefined) return [];
    return [{ from, to, columns: key.columns, others: key.references.columns }];
  });
  return { boxes, references, width: Math.max(0, x - BETWEEN_PX), height: Math.max(0, height - GAP_PX) };
}

/** A key names only the table, which may be in another schema. */
function targetOf(
  { schema }: SchemaTable,
  name: string,
  tables: readonly SchemaTable[],
): SchemaTable | undefined {
  const all = tables.filter((one) => one.name === name);
  return all.find((one) => one.schema === schema) ?? all[0];
}

interface Link {
  readonly table: SchemaTable;
  readonly target: SchemaTable | undefined;
}

/** The longest path to a table without references; a cycle is cut where it closes. */
function levelsOf(tables: readonly SchemaTable[], links: readonly Link[]): ReadonlyMap<SchemaTable, number> {
  const targets = new Map<SchemaTable, SchemaTable[]>();
  for (const { table, target } of links)
    if (target !== undefined && target !== table) targets.set(table, [...(targets.get(table) ?? []), target]);
  const levels = new Map<SchemaTable, number>();
  const under = new Set<SchemaTable>();
  const level = (table: SchemaTable): number => {
    const known = levels.get(table);
    if (known !== undefined || under.has(table)) return known ?? -1;
    under.add(table);
    const most = Math.max(-1, ...(targets.get(table) ?? []).map(level));
    under.delete(table);
    levels.set(table, most + 1);
    return most + 1;
  };
  for (const table of tables) level(table);
  return levels;
}

function boxOf(table: SchemaTable, x: number, y: number): Box {
  const foreign = new Set(table.foreign_keys.flatMap(({ columns }) => columns));
  const all = table.columns.map(({ name, type, primary_key: isPrimary }): Line => {
    return { name, type: type ?? '', key: isPrimary ? 'primary' : foreign.has(name) ? 'foreign' : null };
  });
  const keysFirst = all.toSorted((one, other) => Number(other.key !== null) - Number(one.key !== null));
  const lines = (all.length > MOST_COLUMNS ? keysFirst : all).slice(0, MOST_COLUMNS);
  const more = all.length - lines.length;
  const height = HEAD_PX + (lines.length + (more > 0 ? 1 : 0)) * LINE_PX + 6;
  return { table, lines, more, x, y, height };
}

/** The middle of a column's line, or of the head if it is not shown. */
export function heightOf({ lines, y }: Box, column: string | undefined): number {
  const at = lines.findIndex(({ name }) => name === column);
  return y + (at < 0 ? HEAD_PX / 2 : HEAD_PX + at * LINE_PX + LINE_PX / 2);
}
