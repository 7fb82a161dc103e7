/** Tables as boxes with their keys as lines, and the same as a list. Only the visible part is drawn. */
import { Button, Group, Stack, Text } from '@mantine/core';
import { useEffect, useMemo, useRef, useState } from 'react';
import { schemaText as words } from '../../../texts/schema-text.ts';
import {
  BOX_PX,
  type Box,
  type Diagram,
  diagramOf,
  HEAD_PX,
  heightOf,
  LINE_PX,
  type Reference,
  type SchemaTable,
} from './layout.ts';
import classes from './schema.module.css';

interface SchemaProps {
  readonly tables: readonly SchemaTable[];
  readonly onOpen: (name: string) => void;
}

const nameOf = ({ schema, name }: SchemaTable) =>
  schema === null || schema === 'public' ? name : `${schema}.${name}`;

interface Sight {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

const MARGIN_PX = 16;
/** Margin around the visible part, so that scrolling shows no gaps. */
const BEYOND_PX = 400;

export function SchemaView({ tables, onOpen }: SchemaProps) {
  const diagram = useMemo(() => diagramOf(tables), [tables]);
  const [isList, setList] = useState(false);
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Text size="sm" c="dimmed">
          {words.lead(diagram.boxes.length, diagram.references.length)}
        </Text>
        <Button size="xs" variant="default" aria-pressed={isList} onClick={() => setList(!isList)}>
          {words.asList}
        </Button>
      </Group>
      {isList ? <KeyList diagram={diagram} onOpen={onOpen} /> : <Drawing diagram={diagram} onOpen={onOpen} />}
    </Stack>
  );
}

interface DiagramProps {
  readonly diagram: Diagram;
  readonly onOpen: (name: string) => void;
}

function Drawing({ diagram: { boxes, references, width, height }, onOpen }: DiagramProps) {
  const [frame, sight] = useSight();
  const [active, setActive] = useState<SchemaTable | null>(null);
  const isSeen = (box: Box) =>
    box.x < sight.right &&
    box.x + BOX_PX > sight.left &&
    box.y < sight.bottom &&
    box.y + box.height > sight.top;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
    <section ref={frame} className={classes.frame} tabIndex={0} aria-label={words.diagram}>
      {/* biome-ignore lint/a11y/noSvgWithoutTitle: its section has the name, and each box its text */}
      <svg
        width={width + 2 * MARGIN_PX}
        height={height + 2 * MARGIN_PX}
        viewBox={`${-MARGIN_PX} ${-MARGIN_PX} ${width + 2 * MARGIN_PX} ${height + 2 * MARGIN_PX}`}
      >
        {references
          .filter(({ from, to }) => isSeen(from) || isSeen(to))
          .map((one) => (
            <path
              key={`${nameOf(one.from.table)} ${one.columns.join(' ')} ${nameOf(one.to.table)}`}
              className={classes.line}
              data-active={one.from.table === active || one.to.table === active || undefined}
              d={curveOf(one)}
            />
          ))}
        {boxes.filter(isSeen).map((box) => (
          <TableBox
            key={nameOf(box.table)}
            box={box}
            onActive={setActive}
            onOpen={() => onOpen(nameOf(box.table))}
          />
        ))}
      </svg>
    </section>
  );
}

/** The part of the diagram in sight. */
function useSight() {
  const frame = useRef<HTMLElement>(null);
  const [sight, setSight] = useState<Sight>({ left: 0, top: 0, right: 2000, bottom: 1500 });
  useEffect(() => {
    const { current } = frame;
    if (current === null) return;
    const look = () => {
      const { scrollLeft: left, scrollTop: top, clientWidth, clientHeight } = current;
      setSight({
        left: left - BEYOND_PX,
        top: top - BEYOND_PX,
        right: left + clientWidth + BEYOND_PX,
        bottom: top + clientHeight + BEYOND_PX,
      });
    };
    look();
    const sizes = new ResizeObserver(look);
    sizes.observe(current);
    current.addEventListener('scroll', look, { passive: true });
    return () => {
      sizes.disconnect();
      current.removeEventListener('scroll', look);
    };
  }, []);
  return [frame, sight] as const;
}

interface BoxProps {
  readonly box: Box;
  readonly onActive: (table: SchemaTable | null) => void;
  readonly onOpen: () => void;
}

function TableBox({ box: { table, lines, more, x, y, height }, onActive, onOpen }: BoxProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: SVG has no buttons
    <g
      className={classes.box}
      role="button"
      tabIndex={0}
      transform={`translate(${x} ${y})`}
      onClick={onOpen}
      onKeyDown={({ key }) => key === 'Enter' && onOpen()}
      onFocus={() => onActive(table)}
      onBlur={() => onActive(null)}
      onMouseEnter={() => onActive(table)}
      onMouseLeave={() => onActive(null)}
    >
      <rect width={BOX_PX} height={height} rx={8} />
      <text x={12} y={19} className={classes.title}>
        {short(nameOf(table), 28)}
      </text>
      <line x1={0} x2={BOX_PX} y1={HEAD_PX} y2={HEAD_PX} />
      {lines.map(({ name, type, key }, at) => (
        <g key={name} transform={`translate(0 ${HEAD_PX + at * LINE_PX + 15})`}>
          <text x={12} data-key={key ?? undefined}>
            {key === 'primary' ? '◆ ' : key === 'foreign' ? '→ ' : ''}
            {short(name, 18)}
          </text>
          <text x={BOX_PX - 10} textAnchor="end" className={classes.type}>
            {short(type, 11)}
          </text>
        </g>
      ))}
      {more > 0 && (
        <text x={12} y={HEAD_PX + lines.length * LINE_PX + 15} className={classes.type}>
          {words.more(more)}
        </text>
      )}
    </g>
  );
}

function short(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/**
 * From the left edge of the referring column to the right edge of the referenced one; around both tables if
 * they overlap.
 */
function curveOf({ from, to, columns, others }: Reference): string {
  const [y1, y2] = [heightOf(from, columns[0]), heightOf(to, others[0])];
  if (to.x + BOX_PX <= from.x) {
    const [x1, x2] = [from.x, to.x + BOX_PX];
    const bend = Math.min(80, (x1 - x2) / 2);
    return `M${x1} ${y1}C${x1 - bend} ${y1} ${x2 + bend} ${y2} ${x2} ${y2}`;
  }
  const [x1, x2] = [from.x + BOX_PX, to.x + BOX_PX];
  const bend = Math.max(x1, x2) + 50;
  return `M${x1} ${y1}C${bend} ${y1} ${bend} ${y2} ${x2} ${y2}`;
}

function KeyList({ diagram: { boxes, references }, onOpen }: DiagramProps) {
  const [most, setMost] = useState(LISTED);
  return (
    <ul className={classes.list} aria-label={words.list}>
      {boxes.slice(0, most).map((box) => (
        <li key={nameOf(box.table)}>
          <button type="button" className={classes.name} onClick={() => onOpen(nameOf(box.table))}>
            {nameOf(box.table)}
          </button>
          <Text size="sm" c="dimmed" className="mono">
            {words.key(box.table.columns.filter((one) => one.primary_key).map(({ name }) => name))}
          </Text>
          {references
            .filter(({ from }) => from === box)
            .map(({ to, columns, others }) => (
              <Text key={`${columns.join()} ${nameOf(to.table)}`} size="sm" className="mono">
                {`${columns.join(', ')} → ${nameOf(to.table)} (${others.join(', ')})`}
              </Text>
            ))}
        </li>
      ))}
      {boxes.length > most && (
        <li>
          <Button size="xs" variant="default" onClick={() => setMost(most + LISTED)}>
            {words.more(boxes.length - most)}
          </Button>
        </li>
      )}
    </ul>
  );
}

const LISTED = 100;
