/** CodeMirror for statements: highlighting, completion of names, Ctrl+Enter, errors. */
import {
  autocompletion,
  type Completion,
  type CompletionSource,
  closeBrackets,
  closeCompletion,
  completeFromList,
  completionKeymap,
} from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { json, jsonLanguage } from '@codemirror/lang-json';
import { MariaSQL, PostgreSQL, SQLite, type SQLNamespace, StandardSQL, sql } from '@codemirror/lang-sql';
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { Compartment, EditorState, type Extension, Prec, StateEffect, StateField } from '@codemirror/state';
import { Decoration, type DecorationSet, EditorView, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useEffect, useRef } from 'react';
import type { DatabaseTable } from '../../../../../sdk/index.ts';
import classes from '../databases.module.css';
import type { Grammar } from './grammar.ts';
import { typedOver } from './typed-over.ts';

interface QueryEditorProps {
  readonly grammar: Grammar;
  readonly value: string;
  readonly tables: readonly DatabaseTable[];
  readonly label: string;
  readonly onChange: (value: string) => void;
  /** The range that is underlined and scrolled to. */
  readonly wrong: Range | null;
  /** `selected`: the selected range, if not empty. */
  readonly onRun: (selected: Range | null) => void;
  readonly onSelect: (selected: Range | null) => void;
}

export interface Range {
  readonly from: number;
  readonly to: number;
}

const DIALECTS = { standard: StandardSQL, sqlite: SQLite, postgresql: PostgreSQL, mysql: MariaSQL } as const;
/** Schemas whose tables are named without it. */
const DEFAULT_SCHEMAS: Readonly<Partial<Record<Grammar, string>>> = { postgresql: 'public' };

const COLOURS = HighlightStyle.define([
  { tag: tags.keyword, color: 'light-dark(#0f5f5c, #75c1b8)', fontWeight: '600' },
  { tag: [tags.string, tags.special(tags.string)], color: 'light-dark(#8a4b12, #e2a06a)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'light-dark(#6b3fa0, #c3a6ea)' },
  { tag: tags.comment, color: 'light-dark(#706b61, #a29d92)', fontStyle: 'italic' },
  { tag: tags.propertyName, color: 'light-dark(#0f5f5c, #75c1b8)' },
]);

/** Commands for documents, and their usual members. */
const COMMANDS = [
  ...['find', 'aggregate', 'insert', 'update', 'delete', 'count', 'distinct', 'findAndModify'],
  ...['createIndexes', 'listIndexes', 'listCollections', 'drop'],
];
const MEMBERS = [
  'filter',
  'projection',
  'sort',
  'limit',
  'skip',
  'documents',
  'updates',
  'deletes',
  'pipeline',
];

function completionOfDocuments(collections: readonly DatabaseTable[]): Extension {
  return jsonLanguage.data.of({
    autocomplete: completeFromList([
      ...collections.map(({ name }) => ({ label: name, type: 'class' })),
      ...COMMANDS.map((label) => ({ label, type: 'keyword' })),
      ...MEMBERS.map((label) => ({ label, type: 'property' })),
    ]),
  });
}

function languageOf(grammar: Grammar, tables: readonly DatabaseTable[]): Extension {
  if (grammar === 'documents') return [json(), completionOfDocuments(tables)];
  const defaultSchema = DEFAULT_SCHEMAS[grammar];
  const more = defaultSchema === undefined ? {} : { defaultSchema };
  const dialect = DIALECTS[grammar];
  return [
    sql({ dialect, schema: namesOf(tables), upperCaseKeywords: true, ...more }),
    dialect.language.data.of({ autocomplete: columnSource(tables) }),
  ];
}

/** Offered at any word start, since a statement may name its table last; after a dot the table is known. */
function columnSource(tables: readonly DatabaseTable[]): CompletionSource {
  const source = completeFromList(columnsOf(tables));
  return (context) => (context.matchBefore(/\.[\w"`]*$/) === null ? source(context) : null);
}

function columnsOf(tables: readonly DatabaseTable[]): Completion[] {
  const all = tables.flatMap((table) => table.columns.map(({ name }) => ({ name, table: table.name })));
  // Names that must be quoted are completed behind their table.
  const named = all.filter(({ name }) => /^\w+$/.test(name));
  return [...Map.groupBy(named, ({ name }) => name)].map(([name, found]) => ({
    label: name,
    type: 'property',
    detail: found.length === 1 ? (found[0]?.table ?? '') : '',
    boost: 1,
  }));
}

/** Columns by table; by schema and table if the engine has schemas. */
function namesOf(tables: readonly DatabaseTable[]): SQLNamespace {
  const of = (some: readonly DatabaseTable[]) =>
    Object.fromEntries(some.map(({ name, columns }) => [name, columns.map((one) => one.name)]));
  const schemas = [...Map.groupBy(tables, ({ schema }) => schema)];
  return Object.assign(
    {},
    ...schemas.map(([name, some]) => (name === null ? of(some) : { [name]: of(some) })),
  );
}

const markWrong = StateEffect.define<Range | null>();
const WRONG = Decoration.mark({ class: classes.wrong ?? '' });

/** Marked until the text changes. */
const wrongPlace = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (marks, { docChanged, effects, newDoc: { length } }) => {
    const marked = effects.find((effect) => effect.is(markWrong))?.value as Range | null | undefined;
    if (marked === undefined) return docChanged ? Decoration.none : marks;
    const to = Math.min(marked?.to ?? 0, length);
    return marked === null || marked.from >= to
      ? Decoration.none
      : Decoration.set(WRONG.range(marked.from, to));
  },
  provide: (field) => EditorView.decorations.from(field),
});

function selectionOf({ selection: { main } }: EditorState): Range | null {
  return main.empty ? null : { from: main.from, to: main.to };
}

export function QueryEditor(props: QueryEditorProps) {
  const { grammar, value, tables, label, wrong } = props;
  const container = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const language = useRef(new Compartment());
  const events = useRef(props);
  events.current = props;
  const first = useRef(value);
  useEffect(() => {
    if (container.current === null) return;
    const run = (view: EditorView) => {
      closeCompletion(view);
      events.current.onRun(selectionOf(view.state));
      return true;
    };
    const editor = new EditorView({
      parent: container.current,
      state: EditorState.create({
        doc: first.current,
        extensions: [
          Prec.highest(keymap.of([{ key: 'Mod-Enter', run }])),
          lineNumbers(),
          history(),
          bracketMatching(),
          closeBrackets(),
          autocompletion(),
          language.current.of([]),
          syntaxHighlighting(COLOURS),
          wrongPlace,
          typedOver,
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': label }),
          EditorView.updateListener.of(({ docChanged, selectionSet, state }) => {
            if (docChanged) events.current.onChange(state.doc.toString());
            if (docChanged || selectionSet) events.current.onSelect(selectionOf(state));
          }),
          keymap.of([...completionKeymap, ...historyKeymap, ...defaultKeymap]),
        ],
      }),
    });
    view.current = editor;
    editor.focus();
    return () => editor.destroy();
  }, [label]);
  useEffect(() => {
    view.current?.dispatch({ effects: language.current.reconfigure(languageOf(grammar, tables)) });
  }, [grammar, tables]);
  useEffect(() => {
    // A query chosen from the history replaces the text of the editor.
    const doc = view.current?.state.doc.toString();
    if (doc === undefined || doc === value) return;
    view.current?.dispatch({ changes: { from: 0, to: doc.length, insert: value } });
  }, [value]);
  useEffect(() => {
    const scroll = wrong === null ? [] : [EditorView.scrollIntoView(wrong.from)];
    view.current?.dispatch({ effects: [markWrong.of(wrong), ...scroll] });
  }, [wrong]);
  return <div ref={container} className={classes.editor} />;
}
