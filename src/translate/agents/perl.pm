# Debugs the Perl program it is loaded into (`perl -d:Bugeye app.pl`), and speaks DBGp on a socket. It needs nothing but what
# comes with Perl: the interpreter calls DB::DB before each statement that has a breakpoint, or before every one while it
# is stepped. Code in the package DB is not debugged itself, and evaluates text where the program stands.
package Devel::Bugeye;

package DB;

use strict;
# Whatever Perl has to say about this code, the program's streams are not the place for it.
no warnings;
use Socket ();

my $socket;
my $pid = $$;
# Subroutines are called as without a debugger: steps are told by the depth of the stack. No statement is stopped at
# before one is asked for.
BEGIN { $^P &= ~0x21 }

my %points;     # by id
my %at;         # file as Perl names it => line => points
my $next = 0;
my ($mode, $depth) = ('', 0);
my ($run, $held) = (undef, 1);
our $busy = 0;
my @frames;     # of the stop: [file, line, function, package, arguments, hints]
my @objects;
our @given;     # @_ of the innermost frame
our $package = 'main';
our $prefix = 'package main; no strict;';    # what code of the innermost frame begins with
our @saved;
our %outer;

my ($LONGEST, $ITEMS, $DEEPEST) = (20_000, 30, 3);

# --- What is said.

sub say_xml {
    my $text = qq(<?xml version="1.0" encoding="UTF-8"?>\n) . join '', @_;
    utf8::encode($text) if utf8::is_utf8($text);
    my $bytes = length($text) . "\0$text\0";
    local $SIG{PIPE} = 'IGNORE';
    while (length $bytes) {
        my $wrote = syswrite $socket, $bytes;
        next if !defined $wrote && $!{EINTR};
        return if !$wrote;
        substr($bytes, 0, $wrote) = '';
    }
}

sub respond {
    my ($command, $id, $attributes, @inside) = @_;
    my $named = join '', map { qq( $_=") . escaped($attributes->{$_}) . '"' } sort keys %$attributes;
    say_xml(qq(<response command="$command" transaction_id="$id"$named>), @inside, '</response>');
}

sub refuse {
    my ($command, $id, $message) = @_;
    respond($command, $id, {}, '<error code="1"><message encoding="base64">', coded($message), '</message></error>');
}

sub escaped {
    my $text = shift;
    $text = '' if !defined $text;
    $text =~ s/&/&amp;/g;
    $text =~ s/</&lt;/g;
    $text =~ s/>/&gt;/g;
    $text =~ s/"/&quot;/g;
    $text =~ s/[\x00-\x08\x0b\x0c\x0e-\x1f]/?/g;
    return $text;
}

sub coded {
    my $text = shift;
    utf8::encode($text) if utf8::is_utf8($text);
    my $coded = pack 'u', $text;
    # Perl's own packing differs from base64 in its letters and its lines alone.
    $coded =~ s/^.//mg;
    $coded =~ s/\n//g;
    $coded =~ tr{` -_}{AA-Za-z0-9+/};
    my $left = (3 - length($text) % 3) % 3;
    substr($coded, -$left) = '=' x $left if $left;
    return $coded;
}

sub decoded {
    my $text = shift;
    $text =~ tr{A-Za-z0-9+/}{}cd;
    $text =~ tr{A-Za-z0-9+/}{ -_};
    my $out = '';
    while ($text =~ /(.{1,60})/gs) {
        $out .= unpack 'u', chr(32 + int(length($1) * 3 / 4)) . $1;
    }
    utf8::decode($out);
    return $out;
}

sub uri_of {
    my $path = shift;
    return $path if $path !~ m{^/};
    utf8::encode($path) if utf8::is_utf8($path);
    $path =~ s{([^A-Za-z0-9/._~-])}{sprintf '%%%02X', ord $1}ge;
    return "file://$path";
}

sub path_of {
    my $path = shift;
    $path =~ s{^file://}{};
    $path =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
    return $path;
}

my %real;

# A file as everyone names it.
sub real_path {
    my $file = shift;
    return $file if $file =~ /^\(eval /;
    if (!exists $real{$file}) {
        my $path = $file =~ m{^/} ? $file : "$Devel::Bugeye::start/$file";
        1 while $path =~ s{/\./}{/} || $path =~ s{/[^/]+/\.\./}{/};
        $real{$file} = $path;
    }
    return $real{$file};
}

# --- What is asked.

my $rest = '';

sub next_command {
    while ($rest !~ /\0/) {
        my $read = sysread $socket, $rest, 65_536, length $rest;
        next if !defined $read && $!{EINTR};
        return undef if !$read;
    }
    $rest =~ s/^(.*?)\0//s;
    my ($head, $data) = split / -- /, $1, 2;
    my %options;
    while ($head =~ / -(\w) (?:"((?:[^"\\]|\\.)*)"|(\S+))/g) {
        my ($name, $value) = ($1, defined $2 ? $2 : $3);
        $value =~ s/\\(.)/$1/g if defined $2;
        $options{$name} = $value;
    }
    my ($command) = $head =~ /^(\w+)/;
    return ($command, \%options, defined $data ? decoded($data) : undef);
}

# Serves until the program is to go on.
sub serve {
    while (1) {
        my ($command, $options, $data) = next_command();
        return let_go() if !defined $command;
        my $id = $options->{i};
        if ($command =~ /^(?:run|step_into|step_over|step_out)$/) {
            $run = [$command, $id];
            go($command);
            return;
        }
        if ($command eq 'detach' || $command eq 'stop') {
            respond($command, $id, {});
            return let_go();
        }
        my $done = eval { answer($command, $id, $options, $data); 1 };
        if (!$done) {
            my $why = "$@";
            $why =~ s/ at \(eval \d+\)(?:\[[^\]\n]*\])? line \d+\.?//g;
            $why =~ s/\s+\z//;
            refuse($command, $id, $why);
        }
    }
}

sub answer {
    my ($command, $id, $options, $data) = @_;
    if ($command eq 'breakpoint_set') {
        respond($command, $id, set($options, $data));
    } elsif ($command eq 'breakpoint_remove') {
        remove(delete $points{$options->{d}});
        respond($command, $id, {});
    } elsif ($command eq 'feature_set') {
        respond($command, $id, { success => 1 });
    } elsif ($command eq 'x_modules') {
        my %all = ($0 => real_path($0), map { defined $INC{$_} ? ($_ => real_path($INC{$_})) : () } keys %INC);
        respond($command, $id, {},
            map { sprintf '<module name="%s" path="%s"/>', escaped($_), escaped($all{$_}) } sort keys %all);
    } elsif ($command eq 'stack_get') {
        respond($command, $id, {}, stack());
    } elsif ($command eq 'context_get') {
        respond($command, $id, {}, context($options->{d} || 0, $options->{c} || 0));
    } elsif ($command eq 'property_get') {
        my ($number) = $options->{n} =~ /^@(\d+)$/;
        my $object = defined $number && $objects[$number] or die "that value is gone\n";
        respond($command, $id, {}, value($options->{n}, $object, $options->{p} || 0));
    } elsif ($command eq 'eval') {
        respond($command, $id, {}, value('', evaluated($options->{d} || 0, $data)));
    } else {
        die "$command is not known\n";
    }
}

# --- Going on and stopping.

sub go {
    my $command = shift;
    ($mode, $held) = ('', 0);
    # The depth of the innermost statement is the number of calls around it.
    $depth = $#frames;
    if ($command eq 'step_into') {
        $mode = @frames ? 'into' : 'entry';
    } elsif ($command eq 'step_over') {
        $mode = 'over';
    } elsif ($command eq 'step_out') {
        ($mode, $depth) = ('over', $depth - 1);
    }
    @frames = ();
    @objects = ();
    $DB::single = $mode ? 1 : 0;
}

sub let_go {
    ($mode, $held, $DB::single) = ('', 0, 0);
    remove($_) for values %points;
    %points = ();
    $pid = 0;
    close $socket;
}

# Called before a statement. `caller` tells which.
sub DB {
    return $DB::single = 0 if $$ != $pid;
    return if $busy;
    my ($file, $line);
    ($package, $file, $line) = caller 0;
    my $here = $at{$file} && $at{$file}{$line};
    my $stops =
        $mode eq 'into' ? !is_unpacking($file, $line)
      : $mode eq 'over' ? !defined caller($depth + 1)
      : $mode eq 'entry' ? ${^GLOBAL_PHASE} eq 'RUN'
      : 0;
    return if !$here && !$stops;
    local $busy = 1;
    @saved = ($@, $!, $^E, $,, $/, $\, $^W);
    ($,, $/, $\, $^W) = ('', "\n", '', 0);
    @given = @_;
    $prefix = prefix_of($package, (caller 0)[8]);
    my @hit = $here ? grep { is_wanted($_) } @$here : ();
    stand(\@hit) if @hit || $stops;
    ($@, $!, $^E, $,, $/, $\, $^W) = @saved;
}

# The program stands still; returns when it is to go on.
sub stand {
    my ($hit, $error, $uncaught) = @_;
    $DB::single = 0;
    @frames = look();
    my ($command, $id) = @{ $run || ['run', 0] };
    my $top = $frames[0] || ['', 0];
    my $attributes = sprintf 'filename="%s" lineno="%d"', escaped(uri_of(real_path($top->[0]))), $top->[1];
    my $text = '';
    if (defined $error) {
        my $class = ref $error || 'die';
        $attributes .= sprintf ' exception="%s"%s', escaped($class), $uncaught ? ' uncaught="1"' : '';
        $text = ref $error ? text(\$error) : $error;
        $text =~ s/\s+\z//;
    }
    respond($command, $id, { status => 'break', reason => 'ok' },
        qq(<message $attributes encoding="base64">), coded($text), '</message>',
        map { qq(<breakpoint id="$_->{id}"/>) } @$hit);
    $run = undef;
    serve();
}

# A signal stops the program wherever it is, even while it waits.
sub interrupted {
    return if $busy || $$ != $pid || !$run;
    local $busy = 1;
    local ($@, $!, $,, $/, $\) = ('', $!, '', "\n", '');
    @saved = ($@, $!, $^E, $,, $/, $\, $^W);
    @given = ();
    $prefix = prefix_of((caller 0)[0, 8]);
    stand([]);
}

# --- Breakpoints.

sub set {
    my ($options, $data) = @_;
    my $id = ++$next;
    my $point = {
        id => $id, kind => $options->{t}, line => $options->{n}, hits => $options->{h} || 0, seen => 0, condition => $data,
        file => defined $options->{f} ? path_of($options->{f}) : undef,
        name => defined $options->{m} ? $options->{m} : $options->{x}, state => $options->{s} || '',
    };
    $points{$id} = $point;
    bind_point($point);
    my $resolved = $point->{kind} eq 'exception' || $point->{bound} || foreseen($point);
    my %told = (id => $id, resolved => $resolved ? 'resolved' : 'unresolved');
    $told{lineno} = $point->{bound}[1] if $point->{bound} && $point->{kind} ne 'call';
    return \%told;
}

# Whether a breakpoint will plainly have a place once its file is compiled: a statement begins on its line.
sub foreseen {
    my $point = shift;
    my $called = $point->{kind} eq 'call';
    local ($/, $_) = ("\n");
    open my $source, '<', $called ? real_path($0) : $point->{file} or return 0;
    my ($number, $begins, $prose) = (0, 1, 0);
    while (my $line = <$source>) {
        $number++;
        last if $line =~ /^__(?:END|DATA)__\b/;
        return 1 if $called && !$prose && $line =~ /^\s*sub\s+(?:main::)?\Q$point->{name}\E\b/;
        $prose = $1 ne 'cut' if $line =~ /^=([a-z]\w*)/;
        next if $prose || $line =~ /^\s*(?:#|=cut|$)/;
        return $begins && $line =~ /^\s*(?![{}\s)]|sub\b|else\b|package\b|use\b|no\b)\S/ ? 1 : 0 if !$called && $number == $point->{line};
        $begins = $line =~ /[;{}]\s*(?:#.*)?$/;
    }
    return 0;
}

sub bind_point {
    my $point = shift;
    return if $point->{bound} || $point->{kind} eq 'exception';
    if ($point->{kind} eq 'call') {
        my $name = $point->{name} =~ /::/ ? $point->{name} : "main::$point->{name}";
        my ($file, $from, $to) = ($DB::sub{$name} || '') =~ /^(.*):(\d+)-(\d+)$/ or return $DB::postponed{$name} = 1;
        my $first = $from;
        $first++ while $first < $to && (is_unpacking($file, $first) || !has_code($file, $first) || $first == $from);
        return bind_line($point, $file, has_code($file, $first) ? $first : $from, $to);
    }
    no strict 'refs';
    for my $key (grep { /^_</ } keys %main::) {
        my $file = substr $key, 2;
        next if real_path($file) ne $point->{file} && $file ne $point->{file};
        bind_line($point, $file, $point->{line}, $#{"::_<$file"});
    }
}

sub line_of {
    my ($file, $line) = @_;
    no strict 'refs';
    return ${"::_<$file"}[$line];
}

sub has_code {
    my $text = line_of(@_);
    no warnings 'numeric';
    return defined $text && $text != 0;
}

# A line that does no more than give names to what its function was called with: a function begins after those.
sub is_unpacking {
    my $text = line_of(@_);
    return defined $text && $text =~ /^\s*my\s*(?:\([^()]*\)\s*=\s*\@_|[\$\@%]\w+\s*=\s*(?:shift\b\s*(?:\(\s*\@?_?\s*\)|\@_)?|\$_\[\d+\]|\@_))\s*;\s*(?:#.*)?$/;
}

# The names that a function gives to what it is called with.
sub parameters {
    my ($file, $from, $to) = ($DB::sub{ $_[0] } || '') =~ /^(.*):(\d+)-(\d+)$/ or return '@_';
    my @names;
    for my $line (grep { is_unpacking($file, $_) } $from .. $to) {
        my ($left) = line_of($file, $line) =~ /^([^=]*)=/;
        push @names, $left =~ /([\$\@%]\w+)/g;
    }
    return join ' ', @names, '@_';
}

# On its line, or the next that has code.
sub bind_line {
    my ($point, $file, $from, $to) = @_;
    no strict 'refs';
    for my $line ($from .. $to) {
        next if !has_code($file, $line);
        ${"::_<$file"}{$line} = 1;
        push @{ $at{$file}{$line} }, $point;
        $point->{bound} = [$file, $line];
        return;
    }
}

sub remove {
    my $point = shift or return;
    my ($file, $line) = @{ $point->{bound} || return };
    my $here = $at{$file}{$line};
    @$here = grep { $_ != $point } @$here;
    return if @$here;
    delete $at{$file}{$line};
    no strict 'refs';
    ${"::_<$file"}{$line} = 0;
}

# A file was compiled, or a function that was waited for.
sub postponed {
    return if !$socket || $$ != $pid;
    local $busy = 1;
    local ($@, $!);
    for my $point (grep { !$_->{bound} } values %points) {
        bind_point($point);
        next if !$point->{bound};
        my $line = $point->{kind} eq 'call' ? '' : qq( lineno="$point->{bound}[1]");
        say_xml(qq(<notify name="breakpoint_resolved"><breakpoint id="$point->{id}"$line/></notify>));
    }
}

# A condition that fails is shown rather than missed.
sub is_wanted {
    my $point = shift;
    if (defined $point->{condition}) {
        # Once its names are known to be there, it is looked at without looking for them again.
        my $value = $point->{checked} ? \briefly($point->{condition}) : where_it_stands($point->{condition});
        $point->{checked} = 1 if !$@;
        return 0 if !$@ && !$$value;
    }
    return ++$point->{seen} >= $point->{hits};
}

sub thrown {
    my $error = shift;
    return if $busy || $$ != $pid || $held || !$run;
    # Undefined while Perl compiles; true in an `eval`, which catches it.
    my $uncaught = defined $^S && !$^S;
    my @hit = grep {
        $_->{kind} eq 'exception'
            && ($_->{state} eq 'raised' ? ($_->{name} eq '*' || is_kind($error, $_->{name})) : $uncaught)
    } values %points;
    return if !@hit;
    local $busy = 1;
    local ($@, $!, $,, $/, $\) = ('', $!, '', "\n", '');
    @saved = ($@, $!, $^E, $,, $/, $\, $^W);
    @given = ();
    $prefix = prefix_of((caller 0)[0, 8]);
    stand([sort { ($b->{state} eq 'raised') <=> ($a->{state} eq 'raised') } @hit], $error, $uncaught);
}

sub is_kind {
    my ($error, $name) = @_;
    return $name eq 'die' if !ref $error;
    return UNIVERSAL::isa($error, $name);
}

# --- The stack.

# Code is as strict with its variables as the program is there.
sub prefix_of {
    my ($package, $hints) = @_;
    my $strict = ($hints || 0) & 0x400 ? ', "vars"' : '';
    return "package $package; no strict; use strict 'subs'$strict;";
}

sub look {
    my ($level, @calls) = (0);
    while (1) {
        my @call = do { package DB; caller $level++ };
        last if !@call;
        push @calls, [@call[0 .. 3], $call[4] ? [@DB::args] : undef, $call[8]];
    }
    # The innermost of ours was called where the program stands.
    my ($entry) = grep { $calls[$_][3] =~ /^DB::(?:DB|thrown|interrupted)$/ } reverse 0 .. $#calls;
    return if !defined $entry;
    my @found;
    for my $at ($entry .. $#calls) {
        my ($package, $file, $line) = @{ $calls[$at] };
        my $around = $calls[$at + 1];
        my $name = $around ? $around->[3] : '<main>';
        $name =~ s/\[.*\]$//;
        push @found, [$file, $line, $name, $package, $around && $around->[4], $calls[$at][5]];
    }
    return @found;
}

sub stack {
    my $level = 0;
    return map {
        sprintf '<stack level="%d" type="file" where="%s" filename="%s" lineno="%d"/>', $level++, escaped($_->[2]),
            escaped(uri_of(real_path($_->[0]))), $_->[1]
    } @frames;
}

# --- Values.

# Evaluates where the program stands; answers a reference to what comes out. The text sees the program's variables and none
# of ours: that is so in this package alone.
sub where_it_stands {
    my $bugeye_code = "$prefix $_[0]\n";
    @_ = @given;
    my @bugeye_value = do {
        ($@, $!, $^E, $,, $/, $\, $^W) = @saved;
        eval $bugeye_code;
    };
    ($,, $/, $\, $^W) = ('', "\n", '', 0);
    return @bugeye_value == 1 ? \$bugeye_value[0] : @bugeye_value ? \\@bugeye_value : \undef;
}

sub briefly {
    no strict;
    my $bugeye_code = "package $package; $_[0]\n";
    @_ = @given;
    return scalar eval $bugeye_code;
}

sub evaluated {
    my ($level, $code) = @_;
    die "there is no such frame\n" if $level > $#frames && $level > 0;
    my $value = $level == 0 ? where_it_stands($code) : elsewhere($level, $code);
    die $@ if $@;
    return $value;
}

# In another frame, by names for its variables.
sub elsewhere {
    my ($level, $code) = @_;
    local %outer = map { $_->[0] => $_->[1] } lexicals($level);
    local @given = @{ $frames[$level][4] || [] };
    my @names = sort keys %outer;
    my $names =
        $] < 5.022
      ? join '', map { sprintf q(my %s = %s{$DB::outer{'%1$s'}}; ), $_, substr $_, 0, 1 } @names
      : "use feature 'refaliasing'; no warnings; " . join '', map { "\\my $_ = \$DB::outer{'$_'}; " } @names;
    local $prefix = prefix_of(@{ $frames[$level] }[3, 5]) . $names;
    return where_it_stands($code);
}

# The variables of a frame that are in scope: name and reference.
sub lexicals {
    my $level = shift;
    my ($cv, $seq, $pad);
    if ($level == 0) {
        local $prefix = 'package DB;';
        ($cv, $seq) = @{ ${ where_it_stands('my $o = B::svref_2object(sub { 1 })->OUTSIDE; [$o->OUTSIDE, $o->OUTSIDE_SEQ]') } };
        $pad = $cv->DEPTH;
    } else {
        my $at = $level;
        $at++ while $frames[$at] && $frames[$at][2] eq '(eval)';
        my $name = ($frames[$at] || return ())->[2];
        no strict 'refs';
        $cv = $name eq '<main>' ? B::main_cv() : defined &$name ? B::svref_2object(\&$name) : die
            "the variables of a function without a name can be read in the innermost frame alone\n";
        $pad = $cv->DEPTH - grep { $_->[2] eq $name } @frames[0 .. $at - 1];
        my $root = $name eq '<main>' ? B::main_root() : $cv->ROOT;
        $seq = sequence($root, @{ $frames[$level] }[0, 1]);
    }
    my ($names, @pads) = $cv->PADLIST->ARRAY;
    my @values = ($pads[($pad > 0 ? $pad : 1) - 1] || return ())->ARRAY;
    my @names = $names->ARRAY;
    my (%found, @order);
    for my $index (0 .. $#names) {
        my $name = $names[$index];
        next if ref $name eq 'B::SPECIAL' || !$name->can('PV') || !defined $name->PV;
        my $text = $name->PV;
        next if $text !~ /^[\$\@%]\w/ || is_our($name) || ref $values[$index] eq 'B::SPECIAL';
        my ($low, $high) = eval { ($name->COP_SEQ_RANGE_LOW, $name->COP_SEQ_RANGE_HIGH) };
        my $captured = is_captured($name);
        # Of those with one name the last that is in scope is meant.
        next if !$captured && defined $seq && defined $low && !($low < $seq && $seq <= $high);
        push @order, $text if !exists $found{$text};
        $found{$text} = $values[$index]->object_2svref;
    }
    return map { [$_, $found{$_}] } @order;
}

sub is_our {
    my $name = shift;
    my $stash = eval { $name->can('OURSTASH') ? $name->OURSTASH : undef };
    return defined $stash && ref $stash ne 'B::SPECIAL';
}

sub is_captured {
    my $name = shift;
    return $] < 5.021007 ? $name->FLAGS & 0x00010000 : $name->FLAGS & 1;
}

# The number that Perl gave the statement on a line.
sub sequence {
    my ($root, $file, $line) = @_;
    my @left = ($root);
    my $before;
    while (my $op = shift @left) {
        next if !$$op;
        if ($op->isa('B::COP') && $op->line <= $line && $op->file eq $file) {
            return $op->cop_seq if $op->line == $line;
            $before = $op->cop_seq;
        }
        if ($op->flags & B::OPf_KIDS()) {
            my @kids;
            for (my $kid = $op->first; $$kid; $kid = $kid->sibling) {
                push @kids, $kid;
            }
            unshift @left, @kids;
        }
    }
    return $before;
}

sub context {
    my ($level, $kind) = @_;
    my $frame = $frames[$level] or die "there is no such frame\n";
    if ($kind == 2) {
        no strict 'refs';
        my $package = $frame->[3];
        my @shown;
        for my $name (sort grep { /^[A-Za-z]\w*$/ } keys %{"${package}::"}) {
            next if ref \${"${package}::"}{$name} ne 'GLOB';
            my $glob = \*{"${package}::$name"};
            push @shown, value("\$$name", *$glob{SCALAR}) if defined ${ *$glob{SCALAR} };
            push @shown, value("\@$name", *$glob{ARRAY}) if *$glob{ARRAY} && @{ *$glob{ARRAY} };
            push @shown, value("\%$name", *$glob{HASH}) if *$glob{HASH} && $name ne 'DB' && %{ *$glob{HASH} };
        }
        return @shown;
    }
    my @args = $level == 0 && !$frame->[4] ? @given : @{ $frame->[4] || [] };
    return (map { value($_->[0], $_->[1]) } lexicals($level)), ($frame->[2] ne '<main>' ? value('@_', \@args) : ());
}

# What a reference to a variable shows; a variable that is a reference is shown as what it refers to.
sub value {
    my ($name, $ref, $page) = @_;
    my $inner = Scalar::Util::reftype($ref) =~ /^(?:REF|SCALAR|LVALUE|VSTRING)$/ ? $$ref : $ref;
    my @parts = children($inner);
    my $attributes = sprintf 'name="%s" type="%s"', escaped($name), escaped(kind($ref));
    if (@parts) {
        push @objects, $ref;
        $attributes .= sprintf ' fullname="@%d" children="1" numchildren="%d"', $#objects, scalar @parts;
    }
    my @inside;
    if (defined $page) {
        my ($from, $to) = ($page * 100, $page * 100 + 99);
        $to = $#parts if $to > $#parts;
        @inside = map { value($_->[0], $_->[1]) } @parts[$from .. $to];
    }
    return join '', "<property $attributes encoding=\"base64\">", coded(text($ref)), @inside, '</property>';
}

sub kind {
    my $ref = shift;
    my $type = Scalar::Util::reftype($ref);
    return lc $type if $type !~ /^(?:REF|SCALAR|LVALUE|VSTRING)$/;
    return 'undef' if !defined $$ref;
    return ref $$ref if ref $$ref;
    return is_number($ref) ? 'number' : 'string';
}

sub is_number {
    my $flags = B::svref_2object($_[0])->FLAGS;
    return $flags & (B::SVf_IOK() | B::SVf_NOK()) && !($flags & B::SVf_POK());
}

sub children {
    my $object = shift;
    return if !ref $object;
    my $type = Scalar::Util::reftype($object);
    return map { [$_, \$object->[$_]] } 0 .. $#$object if $type eq 'ARRAY';
    return map { [$_, \$object->{$_}] } sort keys %$object if $type eq 'HASH';
    return ['$', $object] if $type eq 'REF' || $type eq 'SCALAR' && !Scalar::Util::blessed($object);
    return;
}

# The text of a variable, by a reference to it.
sub text {
    my ($ref, $deep, $room) = @_;
    $deep = $DEEPEST if !defined $deep;
    $room ||= [$LONGEST];
    my $type = Scalar::Util::reftype($ref);
    if ($type eq 'ARRAY' || $type eq 'HASH') {
        return listed($ref, $deep, $room, '(', ')');
    }
    return lc $type if $type !~ /^(?:REF|SCALAR|LVALUE|VSTRING)$/;
    my $value = $$ref;
    my $said =
        !defined $value ? 'undef'
      : ref $value ? referred($value, $deep, $room)
      : is_number($ref) ? "$value"
      : quoted($value);
    $room->[0] -= length $said;
    return $said;
}

sub referred {
    my ($value, $deep, $room) = @_;
    my ($type, $class) = (Scalar::Util::reftype($value), Scalar::Util::blessed($value));
    return "qr/$value/" if defined $class && $class eq 'Regexp';
    my $said =
        $type eq 'ARRAY' ? listed($value, $deep, $room, '[', ']')
      : $type eq 'HASH' ? listed($value, $deep, $room, '{', '}')
      : $type eq 'CODE' ? 'sub'
      : $type =~ /^(?:REF|SCALAR)$/ ? '\\' . ($deep > 0 ? text($value, $deep - 1, $room) : "\x{2026}")
      : lc $type;
    return defined $class ? "$class $said" : $said;
}

sub listed {
    my ($list, $deep, $room, $open, $close) = @_;
    my @parts = children($list);
    return $open . $close if !@parts;
    return "$open\x{2026}$close" if $deep <= 0 || $room->[0] <= 0;
    my @shown;
    my $is_hash = Scalar::Util::reftype($list) eq 'HASH';
    for my $part (@parts) {
        if (@shown == $ITEMS || $room->[0] <= 0) {
            push @shown, "\x{2026}";
            last;
        }
        my $name = $part->[0] =~ /^[A-Za-z_]\w*$/ ? $part->[0] : quoted($part->[0]);
        push @shown, ($is_hash ? "$name => " : '') . text($part->[1], $deep - 1, $room);
    }
    return $open . join(', ', @shown) . $close;
}

sub quoted {
    my $text = shift;
    my $cut = length $text > $LONGEST;
    $text = substr $text, 0, $LONGEST if $cut;
    # Bytes that are a text are shown as one.
    utf8::decode($text) if !utf8::is_utf8($text);
    my %short = ("\n" => '\\n', "\r" => '\\r', "\t" => '\\t', '"' => '\\"', '\\' => '\\\\');
    $text =~ s/([\n\r\t"\\])/$short{$1}/g;
    $text =~ s/([\x00-\x1f])/sprintf '\\x%02x', ord $1/ge;
    return qq("$text") . ($cut ? "\x{2026}" : '');
}

# --- The beginning.

{
    require Cwd;
    $Devel::Bugeye::start = Cwd::getcwd();
    # The program's own list of what is loaded, and from where, is as it would be without us.
    @INC = grep { !m{engine-\d+$} } @INC;
    delete $INC{'Devel/Bugeye.pm'};
    delete $ENV{PERL5DB} if ($ENV{PERL5DB} || '') =~ /Devel::Bugeye/;
    socket $socket, Socket::PF_UNIX(), Socket::SOCK_STREAM(), 0 or die "bugeye: $!\n";
    connect $socket, Socket::pack_sockaddr_un('{socket}') or die "bugeye: $!\n";
    my $version = sprintf '%vd', $^V;
    say_xml(qq(<init fileuri="), escaped(uri_of(real_path($0))), qq(" language="Perl" protocol_version="1.0" appid="$$"><engine version="$version"/></init>));
    $SIG{URG} = \&interrupted;
    $SIG{__DIE__} = \&thrown;
    $busy = 1;
    # Values are shown while it is held, too.
    require B;
    require Scalar::Util;
    serve();
    $busy = 0;
}

1;
