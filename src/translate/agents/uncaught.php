<?php
// Whether an exception of this class, thrown with this stack ([file, line], innermost first), is caught nowhere: no line
// stands in the body of a `try` of its own function that has a `catch` for it.
(function (string $class, array $stack): bool {
    $tries = function (string $file): array {
        $tokens = is_file($file) ? @token_get_all(file_get_contents($file)) : [];
        [$namespace, $uses, $blocks, $found, $functions] = ['', [], [], [], [[0, PHP_INT_MAX]]];
        [$line, $next, $closed] = [1, null, null];
        $name = function (int &$i) use (&$tokens): string {
            $text = '';
            while (isset($tokens[++$i]) && is_array($tokens[$i])) {
                if (!in_array($tokens[$i][0], [T_WHITESPACE, T_COMMENT, T_DOC_COMMENT], true)) {
                    if ($tokens[$i][0] === T_VARIABLE) {
                        break;
                    }
                    $text .= ($tokens[$i][0] === T_AS ? ' ' : '') . $tokens[$i][1] . ($tokens[$i][0] === T_AS ? ' ' : '');
                }
            }
            return $text;
        };
        for ($i = 0; $i < count($tokens); $i++) {
            $token = $tokens[$i];
            $kind = is_array($token) ? $token[0] : $token;
            $line = is_array($token) ? $token[2] : $line;
            if ($kind === T_NAMESPACE) {
                $namespace = $name($i);
                $i--;
            } elseif ($kind === T_USE && !$blocks) {
                foreach (explode(',', $name($i)) as $use) {
                    [$full, $as] = explode(' as ', $use) + [1 => null];
                    $uses[strtolower($as ?? substr(strrchr("\\$full", '\\'), 1))] = ltrim($full, '\\');
                }
            } elseif ($kind === T_TRY) {
                $next = 'try';
            } elseif ($kind === T_FUNCTION) {
                $next = 'function';
            } elseif ($kind === ';') {
                $next = $next === 'function' ? null : $next;
            } elseif ($kind === T_CATCH && $closed !== null) {
                $i++;
                while (isset($tokens[$i]) && $tokens[$i] !== '(') {
                    $i++;
                }
                do {
                    $type = $name($i);
                    $found[$closed]['types'][] = $type;
                } while (($tokens[$i] ?? null) === '|');
                $next = 'catch' . $closed;
            } elseif ($kind === '{' || $kind === T_CURLY_OPEN || $kind === T_DOLLAR_OPEN_CURLY_BRACES) {
                $blocks[] = [$next, $line];
                $next = $kind === '{' ? null : $next;
            } elseif ($kind === '}' && $blocks) {
                [$what, $start] = array_pop($blocks);
                $closed = null;
                if ($what === 'try') {
                    $found[] = ['from' => $start, 'to' => $line, 'types' => []];
                    $closed = array_key_last($found);
                } elseif ($what === 'function') {
                    $functions[] = [$start, $line];
                } elseif ($what !== null && str_starts_with($what, 'catch')) {
                    $closed = (int) substr($what, 5);
                }
            }
        }
        return [$found, $functions, $namespace, $uses];
    };
    // PHPUnit catches everything, to report it: its users want to see where it was thrown, if it was not meant to be.
    $reports = function (string $file) use ($class): bool {
        if (!preg_match('~/phpunit/~i', $file)) {
            return false;
        }
        foreach (debug_backtrace(DEBUG_BACKTRACE_PROVIDE_OBJECT | DEBUG_BACKTRACE_IGNORE_ARGS) as $frame) {
            $test = $frame['object'] ?? null;
            if (is_a($test, 'PHPUnit\\Framework\\TestCase') && property_exists('PHPUnit\\Framework\\TestCase', 'expectedException')) {
                $property = new \ReflectionProperty('PHPUnit\\Framework\\TestCase', 'expectedException');
                $property->setAccessible(true);
                $expected = $property->getValue($test);
                return !($expected && is_a($class, $expected, true));
            }
        }
        return true;
    };
    foreach (['PHPUnit\\Framework\\SkippedTest', 'PHPUnit\\Framework\\IncompleteTest'] as $quiet) {
        if (is_a($class, $quiet, true)) {
            return false;
        }
    }
    foreach ($stack as [$file, $line]) {
        [$found, $functions, $namespace, $uses] = $tries($file);
        $own = function (int $at) use ($functions): array {
            $inside = array_filter($functions, fn($range) => $range[0] <= $at && $at <= $range[1]);
            usort($inside, fn($a, $b) => ($a[1] - $a[0]) <=> ($b[1] - $b[0]));
            return $inside[0];
        };
        foreach ($found as $try) {
            if ($line < $try['from'] || $line > $try['to'] || $own($line) !== $own($try['from'])) {
                continue;
            }
            foreach ($try['types'] as $type) {
                $parts = explode('\\', $type, 2);
                $full = $type[0] === '\\' ? substr($type, 1)
                    : (isset($uses[strtolower($parts[0])])
                        ? $uses[strtolower($parts[0])] . (isset($parts[1]) ? '\\' . $parts[1] : '')
                        : ltrim("$namespace\\$type", '\\'));
                if (is_a($class, $full, true)) {
                    return $reports($file);
                }
            }
        }
    }
    return true;
});
