/** CodeMirror for one statement: colours, completion of table and column names, Ctrl+Enter. */
import {
  autocompletion,
  closeBrackets,
  closeCompletion,
  completeFromList,
  completionKeymap,
} from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { json, jsonLanguage } from '@codemirror/lang-json';
import { MySQL, PostgreSQL, SQLite, sql } from '@codemirror/lang-sql';
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { Compartment, EditorState, type Extension, Prec } from '@codemirror/state';
import { EditorView, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useEffect, useRef } from 'react';
import type { Database, DatabaseTable } from '../../../../sdk/index.ts';
import classes from './query-editor.module.css';

interface QueryEditorProps {
  readonly engine: Database['engine'];
  readonly value: string;
  readonly tables: readonly DatabaseTable[];
  readonly label: string;
  readonly onChange: (value: string) => void;
  readonly onRun: () => void;
}

const DIALECTS = { sqlite: SQLite, postgresql: PostgreSQL, mysql: MySQL } as const;

const COLOURS = HighlightStyle.define([
  { tag: tags.keyword, color: 'light-dark(#0f5f5c, #75c1b8)', fontWeight: '600' },
  { tag: [tags.string, tags.special(tags.string)], color: 'light-dark(#8a4b12, #e2a06a)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'light-dark(#6b3fa0, #c3a6ea)' },
  { tag: tags.comment, color: 'light-dark(#706b61, #a29d92)', fontStyle: 'italic' },
  { tag: tags.propertyName, color: 'light-dark(#0f5f5c, #75c1b8)' },
]);

/** Commands of MongoDB, and what stands in them most. */
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

function languageOf(engine: Database['engine'], tables: readonly DatabaseTable[]): Extension {
  if (engine === 'mongodb') return [json(), completionOfDocuments(tables)];
  const schema = Object.fromEntries(
    tables.map(({ name, columns }) => [name, columns.map((one) => one.name)]),
  );
  return sql({ dialect: DIALECTS[engine], schema, upperCaseKeywords: true });
}

export function QueryEditor({ engine, value, tables, label, onChange, onRun }: QueryEditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const language = useRef(new Compartment());
  const events = useRef({ onChange, onRun });
  events.current = { onChange, onRun };
  const first = useRef(value);
  useEffect(() => {
    if (place.current === null) return;
    const run = (view: EditorView) => {
      closeCompletion(view);
      events.current.onRun();
      return true;
    };
    const editor = new EditorView({
      parent: place.current,
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
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': label }),
          EditorView.updateListener.of(({ docChanged, state }) => {
            if (docChanged) events.current.onChange(state.doc.toString());
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
    view.current?.dispatch({ effects: language.current.reconfigure(languageOf(engine, tables)) });
  }, [engine, tables]);
  useEffect(() => {
    // Chosen from the history: the editor shows it.
    const doc = view.current?.state.doc.toString();
    if (doc === undefined || doc === value) return;
    view.current?.dispatch({ changes: { from: 0, to: doc.length, insert: value } });
  }, [value]);
  return <div ref={place} className={classes.editor} />;
}
