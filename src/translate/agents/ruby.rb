# frozen_string_literal: true

# Debugs the Ruby program it is loaded into (`ruby -r FILE app.rb`), and speaks DBGp on a socket. It needs nothing but Ruby:
# breakpoints are trace points on single lines, so a program without any runs at its own speed. No gem is loaded before
# the first stop, since the program may want another version of it.
module Bugeye
  SOCKET = "{socket}"
  HERE = __FILE__
  PID = Process.pid

  # Of a value's text, and of what is in it.
  LONGEST = 20_000
  ITEMS = 30
  DEPTH = 3

  Point = Struct.new(:id, :kind, :file, :line, :name, :condition, :hits, :seen, :resolved, :state)
  Level = Struct.new(:label, :path, :line, :binding, :code)
  # What a thread stopped for: breakpoints, what was thrown, and its stack where that is gone already.
  Stop = Struct.new(:points, :error, :uncaught, :levels, :told)
  Step = Struct.new(:kind, :thread, :depth)

  # Methods that a program may have defined anew are called as Ruby itself defined them.
  CLASS = Kernel.instance_method(:class)
  IVARS = Kernel.instance_method(:instance_variables)
  IVAR = Kernel.instance_method(:instance_variable_get)
  IS_A = Kernel.instance_method(:is_a?)
  NAME = Module.instance_method(:name)

  class Engine
    def initialize
      require "socket"
      @socket = UNIXSocket.new(SOCKET)
      @writing = Mutex.new
      @lock = Mutex.new
      @roots = Hash.new { |roots, path| roots[path] = [] }
      @points = {}
      # Points by file and line, and by function; what was traced, for good.
      @at = {}
      @entries = {}.compare_by_identity
      @traced = {}.compare_by_identity
      @kept = []
      @next = 0
      @queues = {}
      @stops = {}
      @numbers = {}.compare_by_identity
      @errors = ObjectSpace::WeakMap.new
      @objects = []
      @released = Queue.new
      @held = true
    end

    def begin
      @compiled = TracePoint.new(:script_compiled) { |trace| compiled(trace.instruction_sequence) }
      @compiled.enable
      number(Thread.main)
      send_xml(%(<init fileuri="#{uri($0 == "-" ? "" : File.expand_path($0))}" language="Ruby" protocol_version="1.0" appid="#{PID}"><engine version="#{RUBY_VERSION}"/></init>))
      @reader = Thread.new { read }
      @reader.name = "bugeye"
      @reader.report_on_exception = false
      @released.pop
      at_exit { at_end }
    end

    # --- What is said.

    def send_xml(text)
      text = %(<?xml version="1.0" encoding="UTF-8"?>\n#{text})
      @writing.synchronize { @socket.write("#{text.bytesize}\0#{text}\0") }
    rescue SystemCallError, IOError
      nil
    end

    def respond(command, id, attributes = {}, inside = "")
      named = attributes.map { |name, value| %( #{name}="#{escape(value)}") }.join
      send_xml(%(<response command="#{command}" transaction_id="#{id}"#{named}>#{inside}</response>))
    end

    def refuse(command, id, message)
      respond(command, id, {}, %(<error code="1"><message encoding="base64">#{coded(message)}</message></error>))
    end

    def escape(text)
      text.to_s.dup.force_encoding(Encoding::UTF_8).scrub.gsub(/[&<>"]/, "&" => "&amp;", "<" => "&lt;", ">" => "&gt;", '"' => "&quot;")
          .gsub(/[\x00-\x08\x0b\x0c\x0e-\x1f]/, "?")
    end

    def coded(text)
      [text.to_s].pack("m0")
    end

    def uri(path)
      path.start_with?("/") ? "file://#{path.b.gsub(%r{[^A-Za-z0-9/._~-]}) { |byte| format("%%%02X", byte.ord) }}" : path
    end

    def path(uri)
      uri.delete_prefix("file://").b.gsub(/%(\h\h)/) { $1.hex.chr }.force_encoding(Encoding::UTF_8)
    end

    # --- What is asked.

    def read
      rest = +""
      loop do
        stop_outside until IO.select([@socket], nil, nil, @waiting)
        rest << @socket.readpartial(65_536)
        while (at = rest.index("\0"))
          line = rest.slice!(0..at).chomp("\0")
          begin
            serve(line)
          rescue Exception => e # rubocop:disable Lint/RescueException
            refuse(line[/\A\w+/], line[/ -i (\d+)/, 1], "#{e.class}: #{e.message}")
          end
        end
      end
    rescue SystemCallError, IOError
      detach
    end

    def serve(line)
      command, options, data = parse(line)
      id = options["i"]
      thread = thread_of(options["t"])
      case command
      when "run", "step_into", "step_over", "step_out" then go(command, id, thread)
      when "break" then pause(command, id)
      when "breakpoint_set" then respond(command, id, set(options, data))
      when "breakpoint_remove"
        remove(@points.delete(options["d"]))
        respond(command, id)
      when "feature_set" then respond(command, id, success: 1)
      when "x_threads" then respond(command, id, {}, threads)
      when "x_modules" then respond(command, id, {}, modules)
      when "stack_get" then in_thread(thread, command, id) { stack(thread) }
      when "context_get" then in_thread(thread, command, id) { context(level(thread, options["d"]), options["c"]) }
      when "property_get" then in_thread(thread, command, id) { property(options["n"], options["p"].to_i) }
      when "eval" then in_thread(thread, command, id) { evaluate(thread, options["d"], data) }
      when "detach", "stop"
        respond(command, id)
        detach
      else refuse(command, id, "#{command} is not known")
      end
    end

    def parse(line)
      head, coded = line.split(" -- ", 2)
      options = {}
      head.scan(/ -(\w) (?:"((?:[^"\\]|\\.)*)"|(\S+))/) { options[$1] = $2 ? $2.gsub(/\\(.)/, '\1') : $3 }
      data = coded&.unpack1("m")&.force_encoding(Encoding::UTF_8)
      [head[/\A\w+/], options, data]
    end

    # Runs a block in a thread that stands still, and sends its answer; what only looks can be done from here.
    def in_thread(thread, command, id)
      job = lambda do
        respond(command, id, {}, yield)
      rescue Exception => e # rubocop:disable Lint/RescueException
        refuse(command, id, "#{e.class}: #{e.message.lines.first.to_s.chomp}")
      end
      queue = @lock.synchronize { @queues[thread] }
      queue ? queue.push(job) : job.call
    end

    # --- Threads.

    def number(thread)
      @numbers[thread] ||= (@count = @count.to_i + 1)
    end

    def thread_of(text)
      text && @numbers.key(text.to_i) || @current || Thread.main
    end

    def threads
      all = Thread.list.reject { |thread| thread.equal?(@reader) }
      all.map do |thread|
        name = thread.equal?(Thread.main) ? "main" : thread.name || "thread #{number(thread)}"
        %(<thread id="#{number(thread)}" name="#{escape(name)}"/>)
      end.join
    end

    def modules
      ([File.expand_path($0)] + $LOADED_FEATURES).map do |path|
        %(<module name="#{escape(File.basename(path))}" path="#{escape(path)}"/>)
      end.join
    end

    # --- Going on.

    def go(command, id, thread)
      @lock.synchronize do
        @run = [command, id]
        @held = false
        clear_step
        @current = nil
        depth = @stops[thread]&.levels&.size.to_i
        case command
        when "step_into" then @step = Step.new(:into, thread, 0)
        when "step_over" then @step = Step.new(:over, thread, depth)
        when "step_out" then @step = Step.new(:out, thread, depth - 1)
        end
        @returned = nil
        waiting = @stops.find { |_, stop| !stop.told }
        if waiting
          # Another thread has stopped at the same moment: it is next, and nobody goes on.
          @step = nil
          announce(waiting[0], waiting[1])
        else
          watch_lines
          @objects.clear
          @queues.each_value { |queue| queue.push(:go) }
        end
      end
      @released.push(true)
    end

    def pause(command, id)
      @lock.synchronize do
        @step = Step.new(:pause, nil, 0)
        watch_lines
      end
      respond(command, id)
      @waiting = 0.2
    end

    # A thread that waits for something passes no line: it is stopped where it is, as far as that is seen from outside, and
    # stands still when it passes one.
    def stop_outside
      @waiting = nil
      @lock.synchronize do
        return unless @step&.kind == :pause && @current.nil?

        clear_step
        @current = Thread.main
        @parking = true
        watch_lines
        tell(Thread.main, Stop.new([], nil, false, nil, true))
      end
    end

    def watch_lines
      return unless @step || @parking

      @lines ||= TracePoint.new(:line) do |trace|
        line(trace) { |depth| caller_locations(depth + 3, 1).to_a.empty? }
      end
      @lines.enable unless @lines.enabled?
      return unless @step&.kind == :out

      @returns ||= TracePoint.new(:return) do |trace|
        step = @step
        if step&.kind == :out && Thread.current.equal?(step.thread) && caller_locations(step.depth + 2, 1).to_a.empty?
          @returned = [trace.method_id.to_s, trace.return_value]
        end
      end
      @returns.enable unless @returns.enabled?
    end

    def clear_step
      @step = nil
      @parking = false
      @lines&.disable if @lines&.enabled?
      @returns&.disable if @returns&.enabled?
    end

    def park_others
      return unless Thread.list.size > 2

      @parking = true
      watch_lines
    end

    # A line is passed while one is waited for. The block tells whether the stack is no deeper than that.
    def line(trace)
      return if ours?(trace.path)

      step = @step
      if @current
        arrive(nil) unless Thread.current.equal?(@current)
      elsif step.nil?
        nil
      elsif step.kind == :pause
        arrive(Stop.new([]))
      elsif Thread.current.equal?(step.thread)
        case step.kind
        when :into then arrive(Stop.new([])) unless trace.path.start_with?("<internal:")
        when :over, :out then arrive(Stop.new([])) if yield(step.depth)
        end
      end
    end

    def ours?(path)
      path == HERE || Thread.current.equal?(@reader) || Process.pid != PID
    end

    # --- Stopping. Called by the thread that stops; returns when it is to go on.

    def arrive(stop)
      return if Process.pid != PID || Thread.current.equal?(@reader)

      Thread.handle_interrupt(Object => :never) { stand(Thread.current, stop) }
    end

    def stand(me, stop)
      queue = Queue.new
      levels = levels_here
      @lock.synchronize do
        return if stop.nil? && @current.nil?

        number(me)
        @queues[me] = queue
        @stops[me] = stop || Stop.new([], nil, false, nil, true)
        @stops[me].levels ||= levels
        announce(me, stop) if stop && @current.nil?
      end
      loop do
        job = queue.pop
        break if job == :go

        job.call
      end
    ensure
      @lock.synchronize do
        @queues.delete(me)
        @stops.delete(me)
      end
    end

    def announce(me, stop)
      clear_step
      @current = me
      stop.told = true
      park_others
      tell(me, stop)
    end

    def tell(me, stop)
      command, id = @run
      return unless id

      @run = nil
      top = stop.levels&.first
      attributes = %(filename="#{escape(uri(top ? top.path : ""))}" lineno="#{top ? top.line : 0}")
      text = ""
      if stop.error
        attributes += %( exception="#{escape(name_of(CLASS.bind_call(stop.error)))}")
        attributes += %( uncaught="1") if stop.uncaught
        text = coded(message_of(stop.error))
      end
      inside = %(<message #{attributes} encoding="base64">#{text}</message>)
      inside += stop.points.map { |point| %(<breakpoint id="#{point.id}"/>) }.join
      respond(command, id, { status: "break", reason: "ok", thread: number(me) }, inside)
    end

    def message_of(error)
      error.message.to_s
    rescue StandardError
      ""
    end

    # --- Breakpoints.

    def set(options, data)
      id = (@next += 1).to_s
      point = Point.new(id, options["t"], options["f"] && path(options["f"]), options["n"].to_i, options["m"] || options["x"],
                        data, options["h"].to_i, 0, false, options["s"])
      @points[id] = point
      case point.kind
      when "exception" then watch_errors
      when "call" then all_roots.each { |root| bind_call(point, root) }
      else @roots[real(point.file)].each { |root| bind_line(point, root) }
      end
      resolved = point.kind == "exception" || point.resolved || foreseen(point)
      answer = { id: id, resolved: resolved ? "resolved" : "unresolved" }
      answer[:lineno] = resolved if resolved.is_a?(Integer)
      answer
    end

    # Where a breakpoint will be once its file is loaded.
    def foreseen(point)
      file = point.kind == "call" ? File.expand_path($0) : point.file
      return false unless File.file?(file)

      root = RubyVM::InstructionSequence.compile_file(file)
      return line_for(point, root) if point.kind != "call"

      tree(root).any? { |code| named?(code, point) }
    rescue SyntaxError, StandardError
      false
    end

    # The trace points stay, and find nothing to do: Ruby may be about to use one that would be taken away here.
    def remove(point)
      return unless point

      @at[point.file]&.fetch(point.resolved, nil)&.delete(point)
      @entries.each_value { |points| points.delete(point) }
      watch_errors if point.kind == "exception"
    end

    def all_roots
      @roots.values.flatten
    end

    # A file was read: its code has breakpoints from now on.
    def compiled(root)
      path = root.absolute_path || root.path
      return if path.nil? || path == HERE || Process.pid != PID

      path = real(path)
      @roots[path] << root
      @points.values.each do |point|
        next if point.kind == "exception"

        before = point.resolved
        if point.kind == "call" then bind_call(point, root)
        elsif real(point.file) == path then bind_line(point, root)
        end
        notify(point) if point.resolved && !before
      end
    rescue StandardError
      nil
    end

    # A file by the one name that all its names lead to.
    def real(path)
      File.realpath(path)
    rescue SystemCallError
      path
    end

    def notify(point)
      line = point.resolved.is_a?(Integer) ? %( lineno="#{point.resolved}") : ""
      send_xml(%(<notify name="breakpoint_resolved"><breakpoint id="#{point.id}"#{line}/></notify>))
    end

    def tree(root, found = [])
      found << root
      root.each_child { |child| tree(child, found) }
      found
    end

    def lines_of(code)
      code.trace_points.filter_map { |line, event| line if event == :line }
    end

    # Its line, or the next that has code.
    def line_for(point, root)
      tree(root).flat_map { |code| lines_of(code) }.select { |candidate| candidate >= point.line }.min
    end

    def named?(code, point)
      code.label[/[^.#]+\z/] == point.name[/[^.#:]+[?!=]?\z/] && code.trace_points.any? { |_, event| event == :call }
    end

    def bind_line(point, root)
      line = line_for(point, root)
      return if line.nil? || (point.resolved && line > point.resolved)

      @at[point.file]&.fetch(point.resolved, nil)&.delete(point)
      points = ((@at[point.file] ||= {})[line] ||= [])
      points << point
      point.resolved = line
      return if (@traced[root] ||= {})[[point.file, line]]

      trace = TracePoint.new(:line) { |passed| hit(points, passed) unless points.empty? }
      trace.enable(target: root, target_line: line)
      @traced[root][[point.file, line]] = trace
    rescue ArgumentError
      nil
    end

    # A function is stopped in at its first line, once it is known to be the one that is meant.
    def bind_call(point, root)
      tree(root).each do |code|
        next unless named?(code, point)

        point.resolved = true
        points = @entries[code]
        next points << point if points

        points = (@entries[code] = [point])
        empty = lines_of(code).empty?
        entering = {}.compare_by_identity
        # It is called, then its first line is passed; both may be one instruction.
        trace = TracePoint.new(:call, :line) do |passed|
          next if points.empty?

          entering[Thread.current] = points.select { |one| meant?(one.name, passed) } if passed.event == :call
          entered(entering.delete(Thread.current), passed) if empty || passed.event == :line
        end
        trace.enable(target: code)
        @kept << trace
      end
    rescue ArgumentError
      nil
    end

    def entered(points, trace)
      hit(points, trace) unless points.nil? || points.empty?
    end

    def meant?(name, trace)
      owner, separator = name.match(/\A(.+)(#|\.)[^#.]+\z/)&.captures
      return true unless owner

      separator == "#" ? name_of(trace.defined_class) == owner : trace.self.is_a?(Module) && name_of(trace.self) == owner
    end

    # Several on one line are one stop.
    def hit(points, trace)
      return if ours?(trace.path)

      wanted = points.select { |point| wanted?(point, trace.binding) }
      arrive(Stop.new(wanted)) unless wanted.empty?
    end

    # A condition that fails is shown rather than missed.
    def wanted?(point, binding)
      if point.condition
        holds = begin
          binding.eval(point.condition, "(condition)")
        rescue Exception # rubocop:disable Lint/RescueException
          true
        end
        return false unless holds
      end
      point.seen += 1
      point.seen >= point.hits
    end

    # --- Exceptions.

    def watch_errors
      wanted = @points.values.any? { |point| point.kind == "exception" }
      @raises ||= TracePoint.new(:raise) { |trace| raised(trace) }
      @raises.enable if wanted && !@raises.enabled?
      @raises.disable if !wanted && @raises.enabled?
    end

    def raised(trace)
      return if ours?(trace.path)

      error = trace.raised_exception
      return if @errors.key?(error) || SystemExit === error || SignalException === error

      points = @points.values.select { |point| point.kind == "exception" }
      hit = points.select { |point| point.state == "raised" && (point.name == "*" || kind?(error, point.name)) }
      uncaught = points.select { |point| point.state == "uncaught" }
      levels = levels_here
      @errors[error] = levels
      return arrive(Stop.new(hit, error)) unless hit.empty?
      # One that some code may catch after all is known at the end of the program: the stack is kept until then.
      return if uncaught.empty? || Catching.caught?(error, levels)

      @errors[error] = []
      arrive(Stop.new(uncaught, error, true))
    end

    def kind?(error, name)
      CLASS.bind_call(error).ancestors.any? { |ancestor| name_of(ancestor) == name }
    end

    # The program ends. What nobody caught is shown as it was thrown.
    def at_end
      error = $!
      return if error.nil? || SystemExit === error || SignalException === error || Process.pid != PID

      levels = @errors[error]
      point = @points.values.find { |candidate| candidate.kind == "exception" && candidate.state == "uncaught" }
      arrive(Stop.new([point], error, true, levels)) if levels && !levels.empty? && point
    end

    def detach
      @lock.synchronize do
        clear_step
        [@compiled, @raises].compact.each { |trace| trace.disable if trace.enabled? }
        @points.each_value { |point| remove(point) if point.kind != "exception" }
        @points.clear
        @run = nil
        @current = nil
        @queues.each_value { |queue| queue.push(:go) }
      end
      @released.push(true)
    end

    # --- The stack.

    # The frames of this thread, without ours.
    def levels_here
      frames = Inspector.frames || Thread.current.backtrace_locations.map { |location| [location] }
      frames.reject { |location,| location.path == HERE }.map { |frame| make_level(*frame) }
    end

    def make_level(location, binding = nil, code = nil)
      Level.new(location.label, location.absolute_path || location.path, location.lineno, binding, code)
    end

    def levels(thread)
      stop = @lock.synchronize { @stops[thread] }
      return stop.levels if stop

      (thread.backtrace_locations || []).reject { |location| location.path == HERE }.map { |location| make_level(location) }
    end

    def stack(thread)
      all = levels(thread)
      known = all.any?(&:code)
      all.each_with_index.map do |level, index|
        where = level.label.sub(/\A((?:block .*in )?)(?:Object|Kernel)#/, '\1')
        native = known && level.code.nil? ? ' native="1"' : ""
        %(<stack level="#{index}" where="#{escape(where)}" filename="#{escape(uri(level.path.to_s))}" lineno="#{level.line}"#{native}/>)
      end.join
    end

    def level(thread, number)
      levels(thread)[number.to_i] || raise(ArgumentError, "there is no such frame")
    end

    def binding_of(level)
      level.binding || raise(ArgumentError, "this frame is not Ruby code, or its thread does not stand still")
    end

    # --- Values.

    def context(level, kind)
      case kind
      when "1"
        owner = binding_of(level).receiver
        IVARS.bind_call(owner).map { |name| value(name, IVAR.bind_call(owner, name)) }.join
      when "2" then global_variables.sort.map { |name| value(name, global(name)) }.join
      else
        binding = binding_of(level)
        shown = binding.local_variables.map { |name| value(name, binding.local_variable_get(name)) }
        receiver = binding.receiver
        shown.unshift(value("self", receiver)) unless receiver.equal?(TOPLEVEL_BINDING.receiver)
        shown.unshift(value("(return) #{@returned[0]}", @returned[1])) if @returned && level.equal?(@stops[@current]&.levels&.first)
        shown.join
      end
    end

    def global(name)
      TOPLEVEL_BINDING.eval(name.to_s)
    rescue Exception # rubocop:disable Lint/RescueException
      nil
    end

    def property(name, page)
      object = @objects.fetch(name.delete_prefix("@").to_i)
      value(name, object, children(object).drop(page * 100).take(100))
    end

    def evaluate(thread, number, code)
      return value("", TOPLEVEL_BINDING.dup.eval(code)) if @held

      level = level(thread, number)
      value("", binding_of(level).eval(code, level.path, level.line))
    rescue SyntaxError => e
      raise SyntaxError, e.message.lines.map(&:strip).reject(&:empty?).join(" ")
    end

    def value(name, object, parts = nil)
      all = children(object)
      attributes = %(name="#{escape(name)}" type="#{escape(name_of(CLASS.bind_call(object)))}")
      unless all.empty?
        @objects << object
        attributes += %( fullname="@#{@objects.size - 1}" children="1" numchildren="#{all.size}")
      end
      inside = parts.to_a.map { |part, item| value(part, item) }.join
      %(<property #{attributes} encoding="base64">#{coded(text(object))}#{inside}</property>)
    end

    def name_of(owner)
      NAME.bind_call(owner) || "#<Class>"
    end

    # What is in a value, by name; nothing of the program is run for it.
    def children(object)
      return [] if BasicObject === object && !(Object === object)

      case object
      when Array then object.each_with_index.map { |item, index| [index.to_s, item] }
      when Hash then object.map { |key, item| [text(key, 1), item] }
      when Struct then object.each_pair.map { |name, item| [name.to_s, item] }
      when Module, Proc, Method then []
      else
        parts = IVARS.bind_call(object).map { |name| [name.to_s, IVAR.bind_call(object, name)] }
        defined?(Set) && Set === object ? object.to_a.each_with_index.map { |item, index| [index.to_s, item] } : parts
      end
    rescue StandardError
      []
    end

    def text(object, depth = DEPTH, room = [LONGEST])
      return "#<BasicObject>" unless Object === object

      said =
        case object
        when nil, true, false, Integer, Float, Symbol, Rational, Complex then object.inspect
        when String then string(object)
        when Array then list(object, depth, room, "[", "]") { |item| text(item, depth - 1, room) }
        when Hash then list(object, depth, room, "{", "}") { |key, item| pair(key, item, depth, room) }
        when Range then "#{text(object.begin, 1)}#{object.exclude_end? ? "..." : ".."}#{text(object.end, 1)}"
        when Module then NAME.bind_call(object) || "#<Class>"
        when Exception then "#<#{name_of(CLASS.bind_call(object))}: #{message_of(object)}>"
        when Proc then "#<Proc #{object.source_location&.join(":")}>"
        when Time, Regexp, Thread, IO then object.inspect
        else thing(object, depth, room)
        end
      room[0] -= said.length
      said
    rescue StandardError => e
      "#<#{name_of(CLASS.bind_call(object))} (#{e.class})>"
    end

    def string(object)
      cut = object.length > LONGEST ? object[0, LONGEST] : object
      shown = cut.encoding == Encoding::BINARY ? cut.dup.force_encoding(Encoding::UTF_8) : cut
      shown = String.new(shown).inspect
      object.length > LONGEST ? "#{shown}…" : shown
    end

    def list(object, depth, room, open, close)
      return open + close if object.empty?
      return "#{open}…#{close}" if depth.zero? || room[0] <= 0

      shown = []
      object.each do |*item|
        break shown << "…" if shown.size == ITEMS || room[0] <= 0

        shown << yield(*(item.size == 1 && item[0].is_a?(Array) && open == "{" ? item[0] : item))
      end
      open + shown.join(", ") + close
    end

    def pair(key, item, depth, room)
      plain = Symbol === key && key.inspect.match?(/\A:\w+[?!]?\z/)
      "#{plain ? "#{key}: " : "#{text(key, 1)} => "}#{text(item, depth - 1, room)}"
    end

    def thing(object, depth, room)
      name = name_of(CLASS.bind_call(object))
      parts = children(object)
      return "#<#{name}>" if parts.empty?
      return "#<#{name} …>" if depth.zero? || room[0] <= 0

      shown = parts.take(ITEMS).map { |part, item| "#{part}=#{text(item, depth - 1, room)}" }
      shown << "…" if parts.size > ITEMS
      "#<#{name} #{shown.join(", ")}>"
    end
  end

  # Whether what was just thrown will be caught, read from the code of the frames it will pass: which lines stand in the
  # body of a `begin`, and what its `rescue` is for.
  module Catching
    # Runners of tests catch everything, to report it: their users want to see where it was thrown.
    RUNNERS = %r{/minitest/test\.rb\z|/rspec/core/|/test/unit/testcase\.rb\z}.freeze
    # Not thrown for being wrong.
    QUIET = %w[
      Minitest::Skip Test::Unit::PendedError Test::Unit::OmittedError RSpec::Core::Pending::SkipDeclaredInExample
    ].freeze

    def self.caught?(error, levels)
      return true if QUIET.include?(NAME.bind_call(CLASS.bind_call(error)))

      within = false
      levels.each do |level|
        # The body of a `rescue` is a frame of its own; the one around it stands in the `begin` that is over.
        if level.label.match?(/\A(?:rescue|ensure) in /)
          within = true
          next
        end
        return true if level.code.nil? && level.label.end_with?("loop") && StopIteration === error

        found = regions(level.code).select { |lines, _| lines.include?(level.line) }.sort_by { |lines, _| lines.size }
        found.shift if within
        within = false
        next unless found.any? { |_, kinds| kinds.any? { |kind| takes?(kind, error, level.binding) } }

        return !level.path.to_s.match?(RUNNERS)
      end
      false
    end

    # The lines of each `begin` that has a `rescue`, and what it is for.
    def self.regions(code)
      return [] unless code

      @regions ||= {}
      @regions[[code.path, code.label, code.first_lineno]] ||= read(code.to_a)
    end

    def self.read(parts)
      table, body = parts[12], parts[13]
      table.select { |entry| entry[0] == :rescue }.map do |_, handler, from, to|
        [lines(body, from, to), kinds(handler)]
      end
    end

    def self.lines(body, from, to)
      line = nil
      inside = false
      found = []
      body.each do |part|
        line = part if part.is_a?(Integer)
        inside = true if part == from
        break if part == to

        found << line if inside && line && part.is_a?(Array)
        found << part if inside && part.is_a?(Integer)
      end
      found.uniq
    end

    # Each is a path of constants, or a class; nil is not known.
    def self.kinds(handler)
      found = []
      path = []
      (handler && handler[13]).to_a.each do |name, value|
        case name
        when :getlocal, :getlocal_WC_0, :getlocal_WC_1 then path = []
        when :getconstant then path << value
        when :opt_getconstant_path then path = value
        when :putobject then path = value if value.is_a?(Module)
        when :checkmatch then found << (path.is_a?(Module) || !path.empty? ? path : nil)
        end
      end
      found.empty? ? [nil] : found
    end

    def self.takes?(kind, error, binding)
      return true if kind.nil?

      kind = binding.eval(kind.join("::")) unless kind.is_a?(Module)
      Array(kind).any? { |one| one === error }
    rescue StandardError, ScriptError
      true
    end
  end

  # Ruby lets C code alone look into the frames of a stack. Fiddle calls that code; it is read at the first stop.
  module Inspector
    @lock = Mutex.new

    def self.frames
      return nil if @broken

      @lock.synchronize do
        prepare unless @open
        @open.call(@visit, 0)
        @seen
      ensure
        @seen = nil
      end
    rescue LoadError, StandardError
      @broken = true
      nil
    end

    def self.prepare
      require "fiddle"
      pointer = Fiddle::TYPE_VOIDP
      function = lambda do |name, *arguments|
        Fiddle::Function.new(Fiddle::Handle::DEFAULT[name], arguments, pointer, need_gvl: true)
      end
      locations = function.call("rb_debug_inspector_backtrace_locations", pointer)
      parts = %w[binding iseq].map do |part|
        function.call("rb_debug_inspector_frame_#{part}_get", pointer, Fiddle::TYPE_LONG)
      end
      visitor = Class.new(Fiddle::Closure) do
        define_method(:call) do |context, _|
          all = Fiddle.dlunwrap(locations.call(context).to_i)
          Inspector.seen(all.each_index.map do |index|
            [all[index], *parts.map { |part| Fiddle.dlunwrap(part.call(context, index).to_i) }]
          end)
          0
        end
      end
      @visit = visitor.new(pointer, [pointer, pointer])
      @open = function.call("rb_debug_inspector_open", pointer, pointer)
    end

    def self.seen(frames)
      @seen = frames
    end
  end
end

Bugeye::Engine.new.begin
